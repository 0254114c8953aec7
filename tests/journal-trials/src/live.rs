//! A live thread on the local journal: the real writer decides, and everything goes through the
//! port.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use raddle_core::ports::{AppendError, Journal};
use raddle_core::{
    Base, Class, Command, CommandOutcome, Effect, Envelope, Epoch, Failure, FailureKind, Forked,
    Record, Recovery, Refusal, Seq, Settings, Step, Tail, Thread, ThreadId, ThreadSource,
    ThreadStarted, ThreadWriter, Timestamp, Token, WriterAction, WriterEnd, WriterNode,
};
use raddle_store::LocalJournal;

/// Maximum retries of an append that may succeed later.
const ATTEMPTS_MAX: u32 = 20;

/// Bytes read at a time.
const PAGE_BYTES: usize = 1 << 20;

/// Receives acknowledged and failed appends.
pub trait AppendListener {
    fn stored(&mut self, thread: ThreadId, records: &[Record], class: Class);
    fn failed(&mut self, error: &AppendError, class: Class);
}

/// When decided records are sent to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each round at once, as the server does.
    Rounds,
    /// After this many buffered bytes: for generating much data in a short time.
    Buffered(usize),
}

/// A thread, and its only writer.
pub struct LiveThread<'a> {
    /// Id of the thread.
    pub id: ThreadId,
    /// Reason for the end of the writer, once it has ended.
    pub ended: Option<WriterEnd>,
    store: &'a LocalJournal,
    writer: ThreadWriter,
    pace: Pace,
    buffer: AppendBuffer,
    tokens: u64,
    replies: Vec<(Token, Result<CommandOutcome, Refusal>)>,
}

#[derive(Default)]
struct AppendBuffer {
    after: Seq,
    records: Vec<Record>,
    bases: Vec<Base>,
    bytes: usize,
}

/// Returns the current time.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Folds a thread up to a number, or up to its newest record: the newest base and the records after
/// it.
pub async fn fold(store: &LocalJournal, id: ThreadId, at: Option<Seq>) -> Result<Thread> {
    Ok(fold_tail(store, id, at).await?.0)
}

async fn fold_tail(store: &LocalJournal, id: ThreadId, at: Option<Seq>) -> Result<(Thread, Tail)> {
    let base = store.base(id, at).await?;
    let base = base.filter(|base| base.version == Base::VERSION);
    let mut thread = base.map_or_else(Thread::new, |base| base.thread);
    let mut tail = Tail::default();
    let until = match at {
        Some(at) => at,
        None => store.head(id).await?,
    };
    while thread.head() < until {
        let page = store.read(id, thread.head(), PAGE_BYTES).await?;
        let records: Vec<&Record> = page.iter().filter(|record| record.seq <= until).collect();
        if records.is_empty() {
            break;
        }
        for record in records {
            thread.apply(record);
            tail.count(record);
        }
    }
    Ok((thread, tail))
}

impl<'a> LiveThread<'a> {
    pub async fn start(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        settings: Settings,
        pace: Pace,
        listener: &mut dyn AppendListener,
    ) -> Result<Self> {
        let start = ThreadStarted {
            thread: id,
            tenant: None,
            principal: None,
            source: ThreadSource::AppServer,
            originator: None,
            label: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ephemeral: false,
            paginated: false,
            git: None,
            settings,
        };
        let writer = ThreadWriter::start(start, writer_node(node, 1), now());
        let mut live = Self::new(store, id, writer);
        live.pace = pace;
        live.settle(listener).await?;
        Ok(live)
    }

    /// Takes over an existing thread, from any former owner.
    pub async fn open(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        listener: &mut dyn AppendListener,
    ) -> Result<Self> {
        let (thread, tail) = fold_tail(store, id, None).await?;
        let head = thread.head();
        let node = writer_node(node, thread.epoch().0 + 1);
        let writer = ThreadWriter::open(thread, head, node, now()).since_base(tail);
        let mut live = Self::new(store, id, writer);
        live.settle(listener).await?;
        Ok(live)
    }

    /// Ends the turn that a full disk left open, as the server does. Returns whether its end is
    /// stored; `None` if there was no such turn.
    pub async fn fail_turn(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        listener: &mut dyn AppendListener,
    ) -> Result<Option<bool>> {
        let (thread, tail) = fold_tail(store, id, None).await?;
        if thread.turn().is_none() {
            return Ok(None);
        }
        let node = writer_node(node, thread.epoch().0 + 1);
        let failure = Failure::new(FailureKind::StorageFull, "the disk is full");
        let writer = ThreadWriter::open_to_fail(thread, node, failure, now()).since_base(tail);
        let mut live = Self::new(store, id, writer);
        live.settle(listener).await?;
        Ok(Some(live.ended.is_none()))
    }

    /// Forks a thread at a record, and continues as the new thread.
    pub async fn fork(
        store: &'a LocalJournal,
        (from, at, to): (ThreadId, Seq, ThreadId),
        node: &str,
        listener: &mut dyn AppendListener,
    ) -> Result<Self> {
        store.fork(from, at, to).await?;
        let history = fold(store, to, None).await?;
        let fork = Forked {
            thread: to,
            from,
            at: history.head(),
            principal: None,
            lineage: history.lineage().to_vec(),
            turns: history.turns(),
            settings: history.settings().clone(),
            ephemeral: false,
        };
        let node = writer_node(node, history.epoch().0 + 1);
        let mut live = Self::new(store, to, ThreadWriter::fork(history, fork, node, now()));
        live.settle(listener).await?;
        Ok(live)
    }

    fn new(store: &'a LocalJournal, id: ThreadId, writer: ThreadWriter) -> Self {
        Self {
            id,
            ended: None,
            store,
            writer,
            pace: Pace::Rounds,
            buffer: AppendBuffer::default(),
            tokens: 0,
            replies: Vec::new(),
        }
    }

    /// Returns the current state of the thread.
    pub fn thread(&self) -> &Thread {
        self.writer.thread()
    }

    /// Sends a command and runs the writer until it waits. Returns the reply.
    pub async fn send_command(
        &mut self,
        command: Command,
        listener: &mut dyn AppendListener,
    ) -> Result<Result<CommandOutcome, Refusal>> {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.offer(Envelope::command(token, command))?;
        self.settle(listener).await?;
        let at = self
            .replies
            .iter()
            .position(|(reply_token, _)| *reply_token == token);
        match at {
            Some(at) => Ok(self.replies.swap_remove(at).1),
            // An interrupt is answered when its turn has ended.
            None => Ok(Ok(CommandOutcome::Done {})),
        }
    }

    /// Reports work; it is decided with the next [`LiveThread::settle`].
    pub fn report(&mut self, command: Command) -> Result<()> {
        self.offer(Envelope::report(command))
    }

    /// Returns the pending work.
    pub fn pending(&self) -> Vec<Effect> {
        self.writer.thread().pending()
    }

    fn offer(&mut self, envelope: Envelope) -> Result<()> {
        let full = |_| anyhow::anyhow!("the inbox is full");
        self.writer.offer(envelope).map_err(full)
    }

    /// Runs the writer until it waits or ends.
    pub async fn settle(&mut self, listener: &mut dyn AppendListener) -> Result<()> {
        let mut attempts = 0;
        let mut doubtful = None;
        loop {
            match self.writer.step(now()) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let outcome = self.append(after, &records, class, listener).await;
                    if matches!(outcome, Err(AppendError::Unknown(_))) {
                        doubtful = Some((records, class));
                    }
                    if matches!(outcome, Err(AppendError::Unavailable(_))) {
                        attempts += 1;
                        if attempts > ATTEMPTS_MAX {
                            bail!("the journal stays unavailable: {outcome:?}");
                        }
                    }
                    let is_full = matches!(outcome, Err(AppendError::Full(_)));
                    let mut actions = self.writer.appended(outcome);
                    if is_full && self.writer.fails().is_some() {
                        actions = self.writer.give_up("the disk stays full".to_owned());
                    }
                    self.run_actions(actions).await;
                }
                Step::ReadHead => {
                    attempts += 1;
                    if attempts > ATTEMPTS_MAX {
                        bail!("nobody can say what became of an append");
                    }
                    if let Ok(head) = self.store.head(self.id).await {
                        let before = self.writer.stored();
                        let actions = self.writer.head_is(head);
                        if self.writer.stored() != before
                            && let Some((records, class)) = doubtful.take()
                        {
                            // The writer now knows that the records are stored, and announces them.
                            listener.stored(self.id, &records, class);
                        }
                        self.run_actions(actions).await;
                    }
                }
                Step::Do(actions) => self.run_actions(actions).await,
                Step::Wait(_) => return Ok(()),
                Step::Ended(ended) => {
                    self.ended = Some(ended);
                    return Ok(());
                }
            }
        }
    }

    async fn append(
        &mut self,
        after: Seq,
        records: &[Record],
        class: Class,
        listener: &mut dyn AppendListener,
    ) -> Result<Seq, AppendError> {
        let last = records.last().map_or(after, |record| record.seq);
        let Pace::Buffered(bytes_max) = self.pace else {
            let outcome = self.store.append(self.id, after, records, class).await;
            match &outcome {
                Ok(_) => listener.stored(self.id, records, class),
                Err(error) => listener.failed(error, class),
            }
            return outcome;
        };
        if self.buffer.records.is_empty() {
            self.buffer.after = after;
        }
        self.buffer.bytes += records.iter().map(weight).sum::<usize>();
        self.buffer.records.extend_from_slice(records);
        if self.buffer.bytes >= bytes_max {
            self.flush(listener).await?;
        }
        Ok(last)
    }

    /// Writes the buffered records and bases.
    pub async fn flush(&mut self, listener: &mut dyn AppendListener) -> Result<(), AppendError> {
        let buffer = std::mem::take(&mut self.buffer);
        let AppendBuffer { after, records, .. } = &buffer;
        if !records.is_empty() {
            let class = Class::Process;
            self.store.append(self.id, *after, records, class).await?;
            listener.stored(self.id, records, class);
        }
        for base in buffer.bases {
            self.store.save_base(self.id, base).await?;
        }
        Ok(())
    }

    async fn run_actions(&mut self, actions: Vec<WriterAction>) {
        for action in actions {
            match action {
                WriterAction::Reply(token, result) => self.replies.push((token, result)),
                WriterAction::SaveBase(base) if self.pace == Pace::Rounds => {
                    // A base is only a shortcut; opening the thread works without it.
                    let _ = self.store.save_base(self.id, *base).await;
                }
                WriterAction::SaveBase(base) => self.buffer.bases.push(*base),
                WriterAction::Subscribed(_)
                | WriterAction::Announce(_)
                | WriterAction::Ask(_)
                | WriterAction::Deliver(..)
                | WriterAction::Start(_)
                | WriterAction::Stop(_) => {}
            }
        }
    }

    /// Releases the thread cleanly.
    pub async fn release(mut self, listener: &mut dyn AppendListener) -> Result<()> {
        let released = self.send_command(Command::Release, listener).await?;
        self.flush(listener).await?;
        released.map(|_| ()).context("the thread was not released")
    }
}

fn writer_node(name: &str, epoch: u64) -> WriterNode {
    WriterNode {
        name: name.to_owned(),
        epoch: Epoch(epoch),
        recovery: Recovery::Continue,
    }
}

/// Returns the size of a record as JSON.
pub fn weight(record: &Record) -> usize {
    serde_json::to_vec(record).map_or(0, |json| json.len())
}
