//! Forks of threads, and reverting a thread to an earlier turn.

use std::sync::Arc;

use raddle_core::ports::{
    AppendError, BoxFuture, ForkError, Journal, PageQuery, ReadError, TurnEntry,
};
use raddle_core::{
    Base, Class, Command, Epoch, Event, Forked, IdempotentRequest, Record, RecordBody, Refusal,
    Revert, RevertPoint, Seq, Settings, SettingsChange, Thread, ThreadId, ThreadWriter, TurnId,
};

use crate::images::named_blobs;
use crate::open::{PAGE_BYTES, open};
use crate::task::{NewSubscriber, UsageReport};
use crate::thread_blobs::ThreadBlobs;
use crate::threads::Retention;
use crate::{AgentError, ReplyTo, SubscribeResult, Subscriber, Threads};

/// Page size of the search for a turn.
const TURNS: usize = 100;

/// A request to fork a thread.
#[derive(Debug)]
pub struct ForkRequest {
    /// Thread whose history is copied.
    pub from: ThreadId,
    /// End of the copied history.
    pub point: ForkPoint,
    /// Id of the new thread.
    pub to: ThreadId,
    /// Changes of settings in the new thread.
    pub change: SettingsChange,
    /// Whether the new thread exists in memory only.
    pub ephemeral: bool,
    /// Principal that sent the request.
    pub principal: Option<String>,
    /// Set if the request may be repeated. The new thread stores it.
    pub idempotency: Option<IdempotentRequest>,
}

/// Point in the source where a fork begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// The current head. A turn that runs there ends in the fork.
    Now,
    /// After this turn, which must have ended.
    After(TurnId),
    /// Before this turn: the turn is not copied.
    Before(TurnId),
}

/// Point of a source, as a fork finds it.
#[derive(Debug)]
pub struct ForkOrigin {
    /// Settings of the source at this point.
    pub settings: Settings,
    /// First turn after it.
    pub later: Option<TurnEntry>,
}

/// A turn and its successor.
#[derive(Debug)]
pub struct TurnWithNext {
    /// The turn that was found.
    pub turn: TurnEntry,
    /// The turn after it, if any.
    pub after: Option<TurnEntry>,
}

impl Threads {
    /// Forks a thread. Once the fork is stored, the subscriber receives the reply, and then events.
    /// The source is only read, and need not be loaded.
    pub async fn fork<F>(&self, fork: ForkRequest, subscriber: Arc<dyn Subscriber>, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) -> BoxFuture<'static, bool> + Send + 'static,
    {
        let retention = match fork.ephemeral {
            true => Retention::Ephemeral,
            false => Retention::Durable,
        };
        let to = fork.to;
        let writer = match self.copy(fork, retention).await {
            Ok(writer) => writer,
            Err(error) => return drop(reply(Err(error))),
        };
        let starter = NewSubscriber {
            subscriber,
            reply: Box::new(|subscribed| Some(reply(subscribed))),
            usage: UsageReport::Omitted,
            is_returning: false,
            cursor: None,
        };
        let settings = writer.thread().settings().clone();
        self.shared
            .run(to, writer, settings, retention, Some(starter));
    }

    /// Returns the settings and the next turn at a point of a thread. Fails as a fork there would.
    pub async fn fork_origin(
        &self,
        from: ThreadId,
        point: &ForkPoint,
    ) -> Result<ForkOrigin, AgentError> {
        let peek = self.peek(from).await?;
        if peek.thread.is_archived() {
            return Err(AgentError::Archived);
        }
        let source = self.shared.journal_of(from);
        let (at, later) = self.cut(&*source, from, point).await?;
        let settings = match &later {
            Some(_) => {
                let thread = thread_before(&*source, from, Seq(at.0 + 1)).await?;
                thread.settings().clone()
            }
            None => peek.thread.settings().clone(),
        };
        Ok(ForkOrigin { settings, later })
    }

    /// Returns the last record of a fork at this point, and the first turn after it.
    async fn cut(
        &self,
        source: &dyn Journal,
        from: ThreadId,
        point: &ForkPoint,
    ) -> Result<(Seq, Option<TurnEntry>), AgentError> {
        let later = match point {
            ForkPoint::Now => None,
            ForkPoint::Before(turn) => Some(self.find(from, turn).await?.turn),
            ForkPoint::After(turn) => {
                let entry = self.find(from, turn).await?;
                if entry.turn.ended.is_none() {
                    return Err(Refusal::TurnRunning.into());
                }
                entry.after
            }
        };
        let at = match &later {
            Some(turn) => cut_before(source, from, turn).await?,
            None => source.head(from).await?,
        };
        Ok((at, later))
    }

    async fn copy(
        &self,
        fork: ForkRequest,
        retention: Retention,
    ) -> Result<ThreadWriter, AgentError> {
        let ForkRequest { from, to, .. } = fork;
        // As in the reference.
        if self.peek(from).await?.thread.is_archived() {
            return Err(AgentError::Archived);
        }
        let source = self.shared.journal_of(from);
        let journal = self.shared.journal(retention);
        let (at, _) = self.cut(&*source, from, &fork.point).await?;
        if at == Seq::ZERO {
            return Err(ReadError::NotFound.into());
        }
        let copied = if Arc::ptr_eq(&source, &journal) {
            match journal.fork(from, at, to).await {
                // An earlier attempt of the same request ended before the fork had its first own
                // record.
                Err(ForkError::Taken) if fork.idempotency.is_some() => Ok(()),
                // That thread is not ours to delete.
                Err(taken @ ForkError::Taken) => return Err(not_forked(taken)),
                copied => copied.map(drop).map_err(not_forked),
            }
        } else {
            let blobs = [self.shared.blobs_of(from), self.shared.blobs(retention, to)];
            let mut copied_to = Seq::ZERO;
            let result =
                copy_records((&*source, from, at), (&*journal, to), blobs, &mut copied_to).await;
            if result.is_err() && copied_to > Seq::ZERO {
                // The partial copy is unreachable, and would block a repetition of the request.
                let _ = journal.delete(to).await;
            }
            result
        };
        // The copy needs no `take`: no node wrote to it, and the owner that its records name owns the
        // source.
        let opened = match copied {
            Ok(()) => open(&*journal, to).await.map_err(AgentError::from),
            Err(error) => Err(error),
        };
        let (thread, tail) = match opened {
            Ok(opened) => opened,
            // The copy may belong to another process by now.
            Err(error) if fork.idempotency.is_some() => return Err(error),
            Err(error) => {
                // The partial copy is unreachable.
                let _ = journal.delete(to).await;
                return Err(error);
            }
        };
        if fork.idempotency.is_some() && thread.id() != Some(from) {
            return Err(match thread.id() {
                // Another process was faster. A repeated request finds its thread.
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
        let writer = ThreadWriter::fork(thread, forked, node, now).since_base(tail);
        Ok(match fork.idempotency {
            Some(request) => writer.with_idempotency(request, now),
            None => writer,
        })
    }

    /// Reverts a turn and all later ones. The thread must be idle.
    pub async fn revert(
        &self,
        id: ThreadId,
        turn: TurnEntry,
        principal: Option<String>,
        reply_to: impl Into<ReplyTo>,
    ) {
        let reply_to = reply_to.into();
        let point = match revert_point(&*self.shared.journal_of(id), id, turn.from).await {
            Ok(point) => point,
            Err(error) => return (reply_to.reply)(Err(error.into())),
        };
        let revert = Revert {
            turn: turn.turn,
            at: turn.from,
            point,
            principal,
        };
        self.send_command(id, Command::Revert(revert), reply_to)
            .await;
    }

    /// Finds a turn that is not reverted, and the next one.
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

fn previous(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// Returns the cut point before a turn. The cut also drops the settings that came with the turn:
/// they are stored just before it, with the same timestamp.
async fn cut_before(
    journal: &dyn Journal,
    thread: ThreadId,
    turn: &TurnEntry,
) -> Result<Seq, ReadError> {
    let last = previous(turn.from);
    let records = journal.read(thread, previous(last), 1).await?;
    let is_its_own = |record: &Record| {
        let changes = matches!(&record.body, RecordBody::Event(it) if matches!(**it, Event::SettingsChanged(_)));
        changes && record.seq == last && record.at == turn.started_at
    };
    let is_its_own = records.first().is_some_and(is_its_own);
    Ok(if is_its_own { previous(last) } else { last })
}

/// Limit: records copied into memory for an ephemeral fork; beyond it, the server rejects the
/// request with -32600.
const COPIED_BYTES_MAX: usize = 64 << 20;

/// Copies records into another journal, and first the images that they name. `after` reports the
/// progress.
async fn copy_records(
    (source, from, at): (&dyn Journal, ThreadId, Seq),
    (journal, to): (&dyn Journal, ThreadId),
    [source_blobs, target_blobs]: [ThreadBlobs; 2],
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
        for blob in page.iter().flat_map(named_blobs) {
            image_bytes += blob.bytes;
            if image_bytes > COPIED_BYTES_MAX as u64 {
                return Err(AgentError::TooLong);
            }
            let bytes = source_blobs.get(blob.clone()).await?;
            let stored = target_blobs.put(bytes, blob.media.clone()).await;
            stored.map_err(not_appended)?;
        }
        let appended = journal.append(to, *after, &page, Class::Power).await;
        *after = appended.map_err(not_appended)?;
    }
    Ok(())
}

async fn revert_point(
    journal: &dyn Journal,
    id: ThreadId,
    at: Seq,
) -> Result<RevertPoint, ReadError> {
    let thread = thread_before(journal, id, at).await?;
    Ok(thread.revert_point())
}

/// Returns the state of the thread just before a record.
async fn thread_before(journal: &dyn Journal, id: ThreadId, at: Seq) -> Result<Thread, ReadError> {
    let base = journal.base(id, Some(previous(at))).await?;
    let mut thread = base
        .filter(|base| base.version == Base::VERSION)
        .map_or_else(Thread::new, |base| base.thread);
    loop {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        let mut earlier = page.iter().take_while(|record| record.seq < at).peekable();
        if earlier.peek().is_none() {
            return Ok(thread);
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
        AppendError::Unknown(_) => Refusal::OutcomeUnknown.into(),
        error => Refusal::NotStored(error.to_string()).into(),
    }
}
