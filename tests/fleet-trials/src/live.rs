//! A thread that a node writes: the real writer decides, as in the server, and everything goes
//! through the port and into the history.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use raddle_core::ports::{AppendError, Journal};
use raddle_core::{
    Base, Class, Command, Effect, Envelope, Epoch, Purpose, Record, Recovery, Seq, Settings, Step,
    Tail, Thread, ThreadId, ThreadSource, ThreadStarted, ThreadWriter, Timestamp, Token,
    WriterAction, WriterEnd, WriterNode,
};
use raddle_store::FleetJournal;

use crate::history::{AppendOutcome, HistoryEntry, Recorder, notes};

/// Bytes read at a time.
const PAGE_BYTES: usize = 1 << 20;

/// Pause before an append or a read of the head is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// One process that writes threads.
pub struct FleetNode {
    pub name: String,
    pub journal: FleetJournal,
    pub recorder: Recorder,
    pub threads: Vec<ThreadId>,
    /// Nodes that this one takes for dead.
    pub dead: Mutex<HashSet<String>>,
    /// Offset of its clock, in milliseconds.
    pub clock_offset: i64,
    /// Number of acknowledged appends.
    pub acknowledged: AtomicU64,
    /// Number of lives and of appends so far.
    pub last_number: AtomicU64,
}

impl FleetNode {
    fn now(&self) -> Timestamp {
        Timestamp::from(SystemTime::now()).plus_ms(self.clock_offset)
    }

    fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn is_dead(&self, node: &str) -> bool {
        let dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        dead.contains(node)
    }

    fn writer_node(&self, epoch: u64) -> WriterNode {
        WriterNode {
            name: self.name.clone(),
            epoch: Epoch(epoch),
            recovery: Recovery::Continue,
        }
    }
}

/// When a node takes a thread from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakePolicy {
    /// If that node is dead.
    FromDead,
    /// Also if it is alive: its lease seemed to have ended.
    FromAny,
}

/// A thread, and the only writer of this process.
pub struct FleetThread<'a> {
    node: &'a FleetNode,
    slot: usize,
    life: u64,
    id: ThreadId,
    writer: ThreadWriter,
    tokens: u64,
    pub ended: Option<WriterEnd>,
}

impl<'a> FleetThread<'a> {
    /// Takes a thread, or creates it. Returns `None` if a live node has it.
    pub async fn open(
        node: &'a FleetNode,
        slot: usize,
        policy: TakePolicy,
    ) -> Result<Option<Self>> {
        let (id, journal) = (node.threads[slot], &node.journal);
        let life = node.next_number();
        let writer = if journal.head(id).await? == Seq::ZERO {
            let start = started(id, slot);
            ThreadWriter::start(start, node.writer_node(1), node.now())
        } else {
            let Some((thread, tail)) = take(node, id, policy).await? else {
                return Ok(None);
            };
            let records = read_all(journal, id, thread.head()).await?;
            node.recorder.record(HistoryEntry::Taken {
                thread: slot,
                life,
                records: notes(&records),
            })?;
            let (head, epoch) = (thread.head(), thread.epoch().0 + 1);
            ThreadWriter::open(thread, head, node.writer_node(epoch), node.now()).since_base(tail)
        };
        let mut live = Self {
            node,
            slot,
            life,
            id,
            writer,
            tokens: 0,
            ended: None,
        };
        live.settle().await?;
        Ok(Some(live))
    }

    pub fn has_turn(&self) -> bool {
        self.writer.thread().turn().is_some()
    }

    pub fn purpose(&self) -> Option<Purpose> {
        self.writer.thread().purpose()
    }

    pub fn pending(&self) -> Option<Effect> {
        self.writer.thread().pending().into_iter().next()
    }

    /// Sends a command, and runs the writer until it waits or ends.
    pub async fn send(&mut self, command: Command) -> Result<()> {
        self.tokens += 1;
        self.offer(Envelope::command(Token(self.tokens), command))?;
        self.settle().await
    }

    /// Adds a report of work, which the next round decides.
    pub fn report(&mut self, command: Command) -> Result<()> {
        self.offer(Envelope::report(command))
    }

    fn offer(&mut self, envelope: Envelope) -> Result<()> {
        if self.ended.is_none() && self.writer.offer(envelope).is_err() {
            bail!("the inbox is full");
        }
        Ok(())
    }

    /// Runs the writer until it waits or ends.
    pub async fn settle(&mut self) -> Result<()> {
        let mut doubtful = None;
        loop {
            match self.writer.step(self.node.now()) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let op = self.node.next_number();
                    let result = self.append(op, after, &records, class).await?;
                    let retry = matches!(
                        result,
                        Err(AppendError::Unavailable(_) | AppendError::Full(_))
                    );
                    if matches!(result, Err(AppendError::Unknown(_))) {
                        doubtful = Some(op);
                    }
                    let result = match result {
                        // The trial frees the disk again.
                        Err(AppendError::Full(what)) => Err(AppendError::Unavailable(what)),
                        result => result,
                    };
                    let actions = self.writer.appended(result);
                    self.run_actions(actions).await;
                    if retry {
                        tokio::time::sleep(RETRY_AFTER).await;
                    }
                }
                Step::ReadHead => match self.node.journal.head(self.id).await {
                    Ok(head) => {
                        let before = self.writer.stored();
                        let actions = self.writer.head_is(head);
                        let is_stored = self.writer.stored() != before;
                        // A writer that ends does not know.
                        if !self.writer.is_over()
                            && let Some(op) = doubtful.take()
                        {
                            let stored = is_stored;
                            let entry = HistoryEntry::Settled { op, stored };
                            self.node.recorder.record(entry)?;
                        }
                        self.run_actions(actions).await;
                    }
                    Err(_) => tokio::time::sleep(RETRY_AFTER).await,
                },
                Step::Do(actions) => self.run_actions(actions).await,
                Step::Wait(_) => return Ok(()),
                Step::Ended(ended) => {
                    self.node.recorder.record(HistoryEntry::Ended {
                        thread: self.slot,
                        life: self.life,
                        reason: format!("{ended:?}"),
                    })?;
                    self.ended = Some(ended);
                    return Ok(());
                }
            }
        }
    }

    async fn append(
        &self,
        op: u64,
        after: Seq,
        records: &[Record],
        class: Class,
    ) -> Result<Result<Seq, AppendError>> {
        let recorder = &self.node.recorder;
        recorder.record(HistoryEntry::Append {
            thread: self.slot,
            life: self.life,
            op,
            durable: class.into(),
            records: notes(records),
        })?;
        let append = self.node.journal.append(self.id, after, records, class);
        let result = append.await;
        let outcome = match &result {
            Ok(_) => AppendOutcome::Stored,
            Err(error) => AppendOutcome::of(error),
        };
        recorder.record(HistoryEntry::Appended { op, outcome })?;
        if result.is_ok() {
            self.node.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        Ok(result)
    }

    async fn run_actions(&mut self, actions: Vec<WriterAction>) {
        for action in actions {
            if let WriterAction::SaveBase(base) = action {
                // A base is only a shortcut; opening the thread works without it.
                let _ = self.node.journal.save_base(self.id, *base).await;
            }
        }
    }
}

fn started(id: ThreadId, slot: usize) -> ThreadStarted {
    ThreadStarted {
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
        settings: Settings {
            cwd: format!("/w/{slot}"),
            ..Settings::default()
        },
    }
}

/// Folds a thread and takes it from its owner, as the server does.
async fn take(
    node: &FleetNode,
    id: ThreadId,
    policy: TakePolicy,
) -> Result<Option<(Thread, Tail)>> {
    let journal = &node.journal;
    let base = journal.base(id, None).await?;
    let base = base.filter(|base| base.version == Base::VERSION);
    let mut thread = base.map_or_else(Thread::new, |base| base.thread);
    let mut tail = Tail::default();
    let head = journal.head(id).await?;
    read_on(journal, id, head, &mut thread, &mut tail).await?;
    loop {
        let former = thread.owner().filter(|it| *it != node.name);
        if policy == TakePolicy::FromDead && former.is_some_and(|it| !node.is_dead(it)) {
            return Ok(None);
        }
        let head = journal.take(id, former).await?;
        if !read_on(journal, id, head, &mut thread, &mut tail).await? {
            return Ok(Some((thread, tail)));
        }
    }
}

async fn read_on(
    journal: &FleetJournal,
    id: ThreadId,
    head: Seq,
    thread: &mut Thread,
    tail: &mut Tail,
) -> Result<bool> {
    let before = thread.head();
    while thread.head() < head {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        if page.is_empty() {
            break;
        }
        for record in &page {
            thread.apply(record);
            tail.count(record);
        }
    }
    Ok(thread.head() > before)
}

/// Reads the records of a thread up to a number.
pub async fn read_all(journal: &FleetJournal, id: ThreadId, until: Seq) -> Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let after = records.last().map_or(Seq::ZERO, |record| record.seq);
        let page = journal.read(id, after, PAGE_BYTES).await?;
        let length = records.len();
        records.extend(page.into_iter().filter(|record| record.seq <= until));
        if records.len() == length {
            return Ok(records);
        }
    }
}
