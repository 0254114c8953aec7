//! A live thread on the local journal: the real owner decides, and everything goes through the port.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use raddle_core::ports::{AppendError, Journal};
use raddle_core::{
    Base, Class, Command, CommandOutcome, Effect, Envelope, Epoch, Failure, FailureKind, Forked,
    Record, Recovery, Refusal, Seq, Settings, Step, Tail, Thread, ThreadId, ThreadSource,
    ThreadStarted, ThreadWriter, Timestamp, Token, WriterAction, WriterEnd, WriterNode,
};
use raddle_store::LocalJournal;

/// How often an append that may work if tried again is tried again.
const ATTEMPTS_MAX: u32 = 20;

/// How much is read at a time.
const PAGE_BYTES: usize = 1 << 20;

/// Hears what the journal acknowledged, and what it did not.
pub trait AppendListener {
    /// These are stored.
    fn stored(&mut self, thread: ThreadId, records: &[Record], class: Class);
    /// An append failed.
    fn failed(&mut self, error: &AppendError, class: Class);
}

/// When what was decided goes to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each round at once, as the server does it.
    Rounds,
    /// When this many bytes have gathered: for making much in a short time.
    Buffered(usize),
}

/// A thread, and its only writer.
pub struct LiveThread<'a> {
    /// The thread.
    pub id: ThreadId,
    /// Whether the task is over, and why.
    pub ended: Option<WriterEnd>,
    store: &'a LocalJournal,
    owner: ThreadWriter,
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

/// What time it is.
pub fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Folds a thread up to a number, or up to its newest record: the newest base and what follows it.
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
        let wanted: Vec<&Record> = page.iter().filter(|record| record.seq <= until).collect();
        if wanted.is_empty() {
            break;
        }
        for record in wanted {
            thread.apply(record);
            tail.count(record);
        }
    }
    Ok((thread, tail))
}

impl<'a> LiveThread<'a> {
    /// Begins a thread.
    pub async fn start(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        settings: Settings,
        pace: Pace,
        hears: &mut dyn AppendListener,
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
        let owner = ThreadWriter::start(start, of_name(node, 1), now());
        let mut live = Self::new(store, id, owner);
        live.pace = pace;
        live.settle(hears).await?;
        Ok(live)
    }

    /// Takes a thread that is there, from whoever had it.
    pub async fn open(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        hears: &mut dyn AppendListener,
    ) -> Result<Self> {
        let (thread, tail) = fold_tail(store, id, None).await?;
        let head = thread.head();
        let node = of_name(node, thread.epoch().0 + 1);
        let owner = ThreadWriter::open(thread, head, node, now()).since_base(tail);
        let mut live = Self::new(store, id, owner);
        live.settle(hears).await?;
        Ok(live)
    }

    /// Ends the turn that a full disk left open, as the server does it. Returns whether there was one
    /// and whether its end is stored.
    pub async fn fail_turn(
        store: &'a LocalJournal,
        id: ThreadId,
        node: &str,
        hears: &mut dyn AppendListener,
    ) -> Result<Option<bool>> {
        let (thread, tail) = fold_tail(store, id, None).await?;
        if thread.turn().is_none() {
            return Ok(None);
        }
        let node = of_name(node, thread.epoch().0 + 1);
        let failure = Failure::new(FailureKind::StorageFull, "the disk is full");
        let owner = ThreadWriter::open_to_fail(thread, node, failure, now()).since_base(tail);
        let mut live = Self::new(store, id, owner);
        live.settle(hears).await?;
        Ok(Some(live.ended.is_none()))
    }

    /// Goes on from a thread's history up to a record, as another thread.
    pub async fn fork(
        store: &'a LocalJournal,
        (from, at, to): (ThreadId, Seq, ThreadId),
        node: &str,
        hears: &mut dyn AppendListener,
    ) -> Result<Self> {
        store.fork(from, at, to).await?;
        let past = fold(store, to, None).await?;
        let fork = Forked {
            thread: to,
            from,
            at: past.head(),
            principal: None,
            lineage: past.lineage().to_vec(),
            turns: past.turns(),
            settings: past.settings().clone(),
            ephemeral: false,
        };
        let node = of_name(node, past.epoch().0 + 1);
        let mut live = Self::new(store, to, ThreadWriter::fork(past, fork, node, now()));
        live.settle(hears).await?;
        Ok(live)
    }

    fn new(store: &'a LocalJournal, id: ThreadId, owner: ThreadWriter) -> Self {
        Self {
            id,
            ended: None,
            store,
            owner,
            pace: Pace::Rounds,
            buffer: AppendBuffer::default(),
            tokens: 0,
            replies: Vec::new(),
        }
    }

    /// The thread as it is.
    pub fn thread(&self) -> &Thread {
        self.owner.thread()
    }

    /// Gives an order and lets the owner do all it can do.
    pub async fn order(
        &mut self,
        command: Command,
        hears: &mut dyn AppendListener,
    ) -> Result<Result<CommandOutcome, Refusal>> {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.offer(Envelope::command(token, command))?;
        self.settle(hears).await?;
        let at = self.replies.iter().position(|(whose, _)| *whose == token);
        match at {
            Some(at) => Ok(self.replies.swap_remove(at).1),
            // A stop is answered when its turn has ended.
            None => Ok(Ok(CommandOutcome::Done {})),
        }
    }

    /// Reports work; it is decided with the next [`Live::settle`].
    pub fn report(&mut self, command: Command) -> Result<()> {
        self.offer(Envelope::report(command))
    }

    /// Work that is owed.
    pub fn pending(&self) -> Vec<Effect> {
        self.owner.thread().pending()
    }

    fn offer(&mut self, envelope: Envelope) -> Result<()> {
        let full = |_| anyhow::anyhow!("the inbox is full");
        self.owner.offer(envelope).map_err(full)
    }

    /// Lets the owner do all it can do.
    pub async fn settle(&mut self, hears: &mut dyn AppendListener) -> Result<()> {
        let mut attempts = 0;
        let mut doubtful = None;
        loop {
            match self.owner.step(now()) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let outcome = self.append(after, &records, class, hears).await;
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
                    let mut outs = self.owner.appended(outcome);
                    if is_full && self.owner.fails().is_some() {
                        outs = self.owner.give_up("the disk stays full".to_owned());
                    }
                    self.take(outs).await;
                }
                Step::ReadHead => {
                    attempts += 1;
                    if attempts > ATTEMPTS_MAX {
                        bail!("nobody can say what became of an append");
                    }
                    if let Ok(head) = self.store.head(self.id).await {
                        let before = self.owner.stored();
                        let outs = self.owner.head_is(head);
                        if self.owner.stored() != before
                            && let Some((records, class)) = doubtful.take()
                        {
                            // The owner believes it now, and so does everyone it tells.
                            hears.stored(self.id, &records, class);
                        }
                        self.take(outs).await;
                    }
                }
                Step::Do(outs) => self.take(outs).await,
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
        hears: &mut dyn AppendListener,
    ) -> Result<Seq, AppendError> {
        let last = records.last().map_or(after, |record| record.seq);
        let Pace::Buffered(bytes_max) = self.pace else {
            let outcome = self.store.append(self.id, after, records, class).await;
            match &outcome {
                Ok(_) => hears.stored(self.id, records, class),
                Err(error) => hears.failed(error, class),
            }
            return outcome;
        };
        if self.buffer.records.is_empty() {
            self.buffer.after = after;
        }
        self.buffer.bytes += records.iter().map(weight).sum::<usize>();
        self.buffer.records.extend_from_slice(records);
        if self.buffer.bytes >= bytes_max {
            self.flush(hears).await?;
        }
        Ok(last)
    }

    /// Writes what has gathered.
    pub async fn flush(&mut self, hears: &mut dyn AppendListener) -> Result<(), AppendError> {
        let gathered = std::mem::take(&mut self.buffer);
        let AppendBuffer { after, records, .. } = &gathered;
        if !records.is_empty() {
            let class = Class::Process;
            self.store.append(self.id, *after, records, class).await?;
            hears.stored(self.id, records, class);
        }
        for base in gathered.bases {
            self.store.save_base(self.id, base).await?;
        }
        Ok(())
    }

    async fn take(&mut self, outs: Vec<WriterAction>) {
        for out in outs {
            match out {
                WriterAction::Reply(token, result) => self.replies.push((token, result)),
                WriterAction::SaveBase(base) if self.pace == Pace::Rounds => {
                    // It is only a shortcut; whoever opens the thread does without.
                    let _ = self.store.save_base(self.id, *base).await;
                }
                WriterAction::SaveBase(base) => self.buffer.bases.push(*base),
                WriterAction::Subscribed(_)
                | WriterAction::Tell(_)
                | WriterAction::Ask(_)
                | WriterAction::Deliver(..)
                | WriterAction::Start(_)
                | WriterAction::Stop(_) => {}
            }
        }
    }

    /// Leaves the thread in good order.
    pub async fn release(mut self, hears: &mut dyn AppendListener) -> Result<()> {
        let released = self.order(Command::Release, hears).await?;
        self.flush(hears).await?;
        released.map(|_| ()).context("the thread was not released")
    }
}

fn of_name(name: &str, epoch: u64) -> WriterNode {
    WriterNode {
        name: name.to_owned(),
        epoch: Epoch(epoch),
        recovery: Recovery::Continue,
    }
}

/// How many bytes a record has as JSON.
pub fn weight(record: &Record) -> usize {
    serde_json::to_vec(record).map_or(0, |json| json.len())
}
