//! Threads that begin with another's history, and threads that go back in their own.

use std::sync::Arc;

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, ForkError, Journal, PageQuery, ReadError, TurnEntry,
};
use raddle_core::{
    Base, Class, Command, Epoch, Event, Forked, IdempotentRequest, Record, RecordBody, Refusal,
    Revert, RevertPoint, Seq, SettingsChange, Thread, ThreadId, ThreadWriter, TurnId,
};

use crate::images::named;
use crate::open::{PAGE_BYTES, open};
use crate::task::{NewSubscriber, UsageReport};
use crate::threads::Retention;
use crate::{AgentError, ReplyTo, SubscribeResult, Subscriber, Threads};

/// How many turns are looked at at a time.
const TURNS: usize = 100;

/// A thread that is to begin with another's history.
#[derive(Debug)]
pub struct ForkRequest {
    /// The other.
    pub from: ThreadId,
    /// How much of its history.
    pub point: ForkPoint,
    /// The new one.
    pub to: ThreadId,
    /// What is otherwise there.
    pub change: SettingsChange,
    /// Whether it lives in memory only.
    pub ephemeral: bool,
    /// Who asks.
    pub principal: Option<String>,
    /// Set when the request may come again. The new thread remembers it.
    pub idempotency: Option<IdempotentRequest>,
}

/// Where a fork leaves its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// Where that is now. A turn that runs there ends here.
    Now,
    /// After this turn, which must have ended.
    After(TurnId),
    /// Before this turn.
    Before(TurnId),
}

/// A turn and what follows it.
#[derive(Debug)]
pub struct TurnWithNext {
    /// The turn.
    pub turn: TurnEntry,
    /// The one after it.
    pub after: Option<TurnEntry>,
}

impl Threads {
    /// Begins a thread with another's history. Once that is stored the listener is answered, and then hears
    /// of it. The source is only read, and need not be live.
    pub async fn fork<F>(&self, fork: ForkRequest, listener: Arc<dyn Subscriber>, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) -> BoxFuture<'static, bool> + Send + 'static,
    {
        let kept = match fork.ephemeral {
            true => Retention::Ephemeral,
            false => Retention::Durable,
        };
        let to = fork.to;
        let owner = match self.copy(fork, kept).await {
            Ok(owner) => owner,
            Err(error) => return drop(reply(Err(error))),
        };
        let starter = NewSubscriber {
            subscriber: listener,
            reply: Box::new(|subscribed| Some(reply(subscribed))),
            usage: UsageReport::Omitted,
            comes_back: false,
            seen: None,
        };
        let settings = owner.thread().settings().clone();
        self.shared.run(to, owner, settings, kept, Some(starter));
    }

    async fn copy(&self, fork: ForkRequest, kept: Retention) -> Result<ThreadWriter, AgentError> {
        let ForkRequest { from, to, .. } = fork;
        let source = self.shared.journal_of(from);
        let journal = self.shared.journal(kept);
        let at = match fork.point {
            ForkPoint::Now => source.head(from).await?,
            ForkPoint::Before(turn) => {
                let found = self.find(from, &turn).await?;
                cut_before(&*source, from, &found.turn).await?
            }
            ForkPoint::After(turn) => {
                let found = self.find(from, &turn).await?;
                if found.turn.ended.is_none() {
                    return Err(Refusal::TurnRunning.into());
                }
                match found.after {
                    Some(after) => cut_before(&*source, from, &after).await?,
                    None => source.head(from).await?,
                }
            }
        };
        if at == Seq::ZERO {
            return Err(ReadError::NotFound.into());
        }
        let copied = if Arc::ptr_eq(&source, &journal) {
            match journal.fork(from, at, to).await {
                // The request was here before, and broke off before the copy had a record of its own.
                Err(ForkError::Taken) if fork.idempotency.is_some() => Ok(()),
                copied => copied.map(drop).map_err(not_forked),
            }
        } else {
            let blobs = [self.shared.blobs_of(from), self.shared.blobs(kept)];
            let mut taken = Seq::ZERO;
            let took = take_over((&*source, from, at), (&*journal, to), blobs, &mut taken).await;
            if took.is_err() && taken > Seq::ZERO {
                // Nobody will ever ask for what there is of it, and it is in the way of who comes again.
                let _ = journal.delete(to).await;
            }
            took
        };
        let opened = match copied {
            Ok(()) => open(&*journal, to).await.map_err(AgentError::from),
            Err(error) => Err(error),
        };
        let (thread, tail) = match opened {
            Ok(opened) => opened,
            // It may be another process's by now.
            Err(error) if fork.idempotency.is_some() => return Err(error),
            Err(error) => {
                // Nobody will ever ask for what there is of it.
                let _ = journal.delete(to).await;
                return Err(error);
            }
        };
        if fork.idempotency.is_some() && thread.id() != Some(from) {
            return Err(match thread.id() {
                // Another process was faster. Who comes again finds it.
                Some(id) if id == to => AgentError::Ended,
                _ => Refusal::KeyReused.into(),
            });
        }
        if thread.is_deleted() {
            self.shared.forget(to, thread.head()).await;
            return Err(Refusal::Deleted.into());
        }
        let forked = Forked {
            thread: to,
            from,
            at: thread.head(),
            principal: fork.principal,
            lineage: thread.lineage().to_vec(),
            turns: thread.turns(),
            settings: fork.change.applied_to(thread.settings()),
            ephemeral: fork.ephemeral,
        };
        let node = self.shared.node(Epoch(thread.epoch().0 + 1));
        let now = self.shared.now();
        let owner = ThreadWriter::fork(thread, forked, node, now).since_base(tail);
        Ok(match fork.idempotency {
            Some(keyed) => owner.with_idempotency(keyed, now),
            None => owner,
        })
    }

    /// Takes back a turn and those after it. Nothing may run in the thread.
    pub async fn revert(
        &self,
        id: ThreadId,
        turn: TurnEntry,
        principal: Option<String>,
        owed: impl Into<ReplyTo>,
    ) {
        let owed = owed.into();
        let past = match revert_point(&*self.shared.journal_of(id), id, turn.from).await {
            Ok(past) => past,
            Err(error) => return (owed.reply)(Err(error.into())),
        };
        let revert = Revert {
            turn: turn.turn,
            at: turn.from,
            point: past,
            principal,
        };
        self.send_command(id, Command::Revert(revert), owed).await;
    }

    /// A turn that counts, and the one after it.
    pub async fn find(&self, id: ThreadId, turn: &TurnId) -> Result<TurnWithNext, AgentError> {
        let mut query = PageQuery {
            limit: TURNS,
            newest_first: true,
            cursor: None,
        };
        let mut after: Option<TurnEntry> = None;
        loop {
            let page = self.turns(id, query.clone()).await?;
            for entry in page.entries {
                if entry.turn == *turn {
                    return Ok(TurnWithNext { turn: entry, after });
                }
                after = Some(entry);
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Err(Refusal::NoSuchTurn.into());
            }
        }
    }
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// Where to cut so that a turn is left out, with the settings that it brought along: these are stored just
/// before it, at the same moment.
async fn cut_before(
    journal: &dyn Journal,
    thread: ThreadId,
    turn: &TurnEntry,
) -> Result<Seq, ReadError> {
    let last = before(turn.from);
    let found = journal.read(thread, before(last), 1).await?;
    let is_its_own = |record: &Record| {
        let changes = matches!(&record.body, RecordBody::Event(it) if matches!(**it, Event::SettingsChanged(_)));
        changes && record.seq == last && record.at == turn.started_at
    };
    let is_its_own = found.first().is_some_and(is_its_own);
    Ok(if is_its_own { before(last) } else { last })
}

/// How much of a thread is taken into memory.
const COPIED_BYTES_MAX: usize = 64 << 20;

/// Takes over records into a journal that does not have them, and before them the images they name. Says how far it
/// has come.
async fn take_over(
    (source, from, at): (&dyn Journal, ThreadId, Seq),
    (journal, to): (&dyn Journal, ThreadId),
    [theirs, ours]: [Arc<dyn Blobs>; 2],
    after: &mut Seq,
) -> Result<(), AgentError> {
    let mut pages = 0;
    let mut image_bytes = 0;
    while *after < at {
        pages += 1;
        if pages > COPIED_BYTES_MAX / PAGE_BYTES {
            return Err(AgentError::TooLong);
        }
        let mut page = source.read(from, *after, PAGE_BYTES).await?;
        page.retain(|record| record.seq <= at);
        if page.is_empty() {
            break;
        }
        for blob in page.iter().flat_map(named) {
            image_bytes += blob.bytes;
            if image_bytes > COPIED_BYTES_MAX as u64 {
                return Err(AgentError::TooLong);
            }
            let bytes = theirs.get(blob.clone()).await?;
            let kept = ours.put(bytes, blob.media.clone()).await;
            kept.map_err(not_appended)?;
        }
        let taken = journal.append(to, *after, &page, Class::Power).await;
        *after = taken.map_err(not_appended)?;
    }
    Ok(())
}

/// The thread as it was just before a record.
async fn revert_point(
    journal: &dyn Journal,
    id: ThreadId,
    at: Seq,
) -> Result<RevertPoint, ReadError> {
    let base = journal.base(id, Some(before(at))).await?;
    let mut thread = base
        .filter(|base| base.version == Base::VERSION)
        .map_or_else(Thread::new, |base| base.thread);
    loop {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        let mut earlier = page.iter().take_while(|record| record.seq < at).peekable();
        if earlier.peek().is_none() {
            return Ok(thread.revert_point());
        }
        earlier.for_each(|record| thread.apply(record));
    }
}

fn not_forked(error: ForkError) -> AgentError {
    match error {
        ForkError::Read(error) => error.into(),
        ForkError::Append(error) => not_appended(error),
        error @ (ForkError::Taken | ForkError::Beyond { .. }) => {
            Refusal::NotStored(error.to_string()).into()
        }
    }
}

fn not_appended(error: AppendError) -> AgentError {
    match error {
        AppendError::Unavailable(_) => AgentError::Unavailable,
        error => Refusal::NotStored(error.to_string()).into(),
    }
}
