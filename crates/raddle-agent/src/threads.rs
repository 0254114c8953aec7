//! The live threads, and handles to them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use raddle_core::policy::Layer;
use raddle_core::ports::{
    BackgroundTerminal, Blobs, Journal, Model, Pages, ReadError, Rulebook, Tools, Webhook,
};
use raddle_core::{
    Command, CommandOutcome, CursorStatus, Epoch, Failure, IdempotentRequest, Recovery, Refusal,
    RequestNumber, Sandbox, Seq, Settings, Status, Thread, ThreadId, ThreadStarted, ThreadWriter,
    Timestamp, WriterEnd, WriterNode,
};
use raddle_protocol::Notification;
use tokio::sync::{Mutex as Turn, Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::context::HistoryBudget;
use crate::counters::Counters;
use crate::environment::{EnvironmentReader, Instructions};
use crate::open::open;
use crate::task::{
    AfterCommand, JOURNAL_TIMEOUT, NewSubscriber, Stores, Task, TaskEnd, TaskMessage, UsageReport,
};
use crate::tool_gate::ToolGate;
use crate::{Delivery, Liveness, ReplyTo, Subscriber};

/// How many messages to one thread may wait.
const INBOX: usize = 64;

/// How many threads may be opened at a time.
const OPENINGS: usize = 64;

/// How long threads may take to be left in good order: a little longer than they wait for a journal that is
/// away.
const CLOSE_TIMEOUT: Duration = JOURNAL_TIMEOUT.saturating_add(Duration::from_secs(5));

/// What the agent needs.
pub struct Options {
    /// Where records are kept.
    pub journal: Arc<dyn Journal>,
    /// Lists and pages of these.
    pub pages: Arc<dyn Pages>,
    /// Images of these.
    pub blobs: Arc<dyn Blobs>,
    /// Where those of threads are kept that need not outlive the process.
    pub memory: Arc<dyn Journal>,
    /// Pages of these.
    pub memory_pages: Arc<dyn Pages>,
    /// Images of these.
    pub memory_blobs: Arc<dyn Blobs>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// What it can do.
    pub tools: Arc<dyn Tools>,
    /// What of that it may.
    pub rules: Arc<dyn Rulebook>,
    /// Whom questions are put to while nobody is attached, where the rules say so.
    pub webhook: Arc<dyn Webhook>,
    /// What time it is.
    pub clock: fn() -> Timestamp,
    /// The name of this process among those that share the journal.
    pub node: String,
    /// Those that share it.
    pub liveness: Arc<dyn Liveness>,
    /// What becomes of a turn whose owner died, where its thread's settings do not say.
    pub recovery: Recovery,
}

/// Why a thread cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another process that is alive has it.
    #[error(
        "another running process has the thread (node {node}); use the thread there, or end that process and try again"
    )]
    OwnedBy {
        /// Its name.
        node: String,
    },
    /// The journal did not take its beginning in time.
    #[error("the journal is not available; the thread was not started, try again")]
    Unavailable,
    /// It does not fit into memory.
    #[error("the thread is too long for a copy in memory; fork it without `ephemeral`")]
    TooLong,
    /// Its task ended while it was asked.
    #[error("the thread's task has ended; try again")]
    Ended,
}

/// What a new subscriber gets.
#[derive(Debug)]
pub struct SubscribeResult {
    /// The thread as it is.
    pub thread: Box<Thread>,
    /// Whether what the subscriber saw can be gone on from.
    pub cursor: CursorStatus,
    /// It needs the records after this one,
    pub after: Seq,
    /// up to this one; what comes later it hears.
    pub head: Seq,
}

/// An order that was carried out.
#[derive(Debug)]
pub struct AppliedCommand<'a> {
    /// What came of it.
    pub outcome: CommandOutcome,
    /// The thread as it is with that.
    pub thread: &'a Thread,
}

/// What became of an order.
pub type CommandResult<'a> = Result<AppliedCommand<'a>, AgentError>;

/// How long a thread's records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    Durable,
    Ephemeral,
}

/// All live threads. Cheap to clone.
#[derive(Clone)]
pub struct Threads {
    pub(crate) shared: Arc<ThreadRegistry>,
}

pub(crate) struct ThreadRegistry {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) pages: Arc<dyn Pages>,
    blobs: Arc<dyn Blobs>,
    memory: Arc<dyn Journal>,
    pub(crate) memory_pages: Arc<dyn Pages>,
    memory_blobs: Arc<dyn Blobs>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tool_gate: Arc<ToolGate>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) node: String,
    pub(crate) liveness: Arc<dyn Liveness>,
    recovery: Recovery,
    live: Mutex<HashMap<ThreadId, Handle>>,
    unstored_ends: Mutex<HashMap<ThreadId, Failure>>,
    /// Woken when a thread is no longer live.
    unloaded: Notify,
    /// Held by whoever opens a thread, so that it is opened once; threads share a few of these, so that one
    /// that takes its time holds up few others.
    opening: [Turn<()>; OPENINGS],
    /// Those who hear what concerns everyone.
    global_subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
    tasks: Mutex<JoinSet<()>>,
    pub(crate) environment_reader: EnvironmentReader,
    pub(crate) history_budget: HistoryBudget,
    pub(crate) counters: Counters,
    /// A thread that never is, for asking the journal whether it answers.
    pub(crate) probe_thread: ThreadId,
}

impl Threads {
    /// No thread is live yet.
    pub fn new(options: Options) -> Self {
        let Options {
            journal,
            pages,
            blobs,
            memory,
            memory_pages,
            memory_blobs,
            model,
            tools,
            rules,
            webhook,
            clock,
            node,
            liveness: nodes,
            recovery,
        } = options;
        Self {
            shared: Arc::new(ThreadRegistry {
                journal,
                pages,
                blobs,
                memory,
                memory_pages,
                memory_blobs,
                model,
                tool_gate: Arc::new(ToolGate {
                    tools,
                    rules,
                    webhook,
                }),
                clock,
                node,
                liveness: nodes,
                recovery,
                live: Mutex::default(),
                unstored_ends: Mutex::default(),
                unloaded: Notify::new(),
                opening: std::array::from_fn(|_| Turn::default()),
                global_subscribers: Mutex::default(),
                tasks: Mutex::default(),
                environment_reader: EnvironmentReader::new(),
                history_budget: HistoryBudget::default(),
                counters: Counters::default(),
                probe_thread: ThreadId::mint(),
            }),
        }
    }

    /// From now on this listener hears what concerns everyone, for as long as it lives.
    pub fn subscribe_global(&self, listener: &Arc<dyn Subscriber>) {
        let mut crowd = self.shared.global_subscribers();
        crowd.retain(|it| it.strong_count() > 0);
        crowd.push(Arc::downgrade(listener));
    }

    /// Tells everyone something that is no record.
    pub fn announce(&self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.shared.tell_others(&notice, |_| false);
    }

    /// Begins a thread. Once that is stored the listener is answered, and then hears of it.
    pub fn start<F>(&self, start: ThreadStarted, listener: Arc<dyn Subscriber>, reply: F) -> Handle
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        self.start_for(None, start, listener, reply)
    }

    /// The same for a request that may come again, which the thread remembers. There must be none of its id.
    pub fn start_for<F>(
        &self,
        keyed: Option<IdempotentRequest>,
        start: ThreadStarted,
        listener: Arc<dyn Subscriber>,
        reply: F,
    ) -> Handle
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        let id = start.thread;
        let kept = if start.ephemeral {
            Retention::Ephemeral
        } else {
            Retention::Durable
        };
        let node = self.shared.node(Epoch(1));
        let settings = start.settings.clone();
        let now = self.shared.now();
        let owner = ThreadWriter::start(start, node, now);
        let owner = match keyed {
            Some(keyed) => owner.with_idempotency(keyed, now),
            None => owner,
        };
        let starter = NewSubscriber {
            subscriber: listener,
            reply: Box::new(|subscribed| {
                reply(subscribed);
                None
            }),
            usage: UsageReport::Omitted,
            comes_back: false,
            seen: None,
        };
        self.shared.run(id, owner, settings, kept, Some(starter))
    }

    /// A handle to a thread, which is opened if it is not live. One that another live node has is
    /// refused; one whose node died is taken over.
    pub async fn get(&self, id: ThreadId) -> Result<Handle, AgentError> {
        if let Some(handle) = self.shared.wait_live(id).await {
            return Ok(handle);
        }
        let _turn = self.shared.opening(id).lock().await;
        if let Some(handle) = self.shared.wait_live(id).await {
            return Ok(handle);
        }
        let (thread, tail) = open(&*self.shared.journal, id).await?;
        // A copy that has not its own first record yet is nobody's thread.
        if thread.id() != Some(id) {
            return Err(ReadError::NotFound.into());
        }
        if thread.is_deleted() {
            self.shared.forget(id, thread.head()).await;
            return Err(Refusal::Deleted.into());
        }
        self.shared.is_free(&thread).await?;
        let node = self.shared.node(Epoch(thread.epoch().0 + 1));
        let head = thread.head();
        let settings = thread.settings().clone();
        let now = self.shared.now();
        let owner = match self.shared.unstored_ends().remove(&id) {
            Some(failure) => ThreadWriter::open_to_fail(thread, node, failure, now),
            None => ThreadWriter::open(thread, head, node, now),
        };
        let owner = owner.since_base(tail);
        let kept = Retention::Durable;
        Ok(self.shared.run(id, owner, settings, kept, None))
    }

    /// What the files of a workspace ask of whoever works in a folder of it; nothing if its disk hangs.
    pub async fn instructions(&self, cwd: &str) -> Instructions {
        let read = self.shared.environment_reader.instructions(cwd).await;
        read.unwrap_or_default()
    }

    /// What the operator has against a command that a client runs by itself in this sandbox; nothing if it may
    /// be.
    pub async fn objection(&self, words: Vec<String>, sandbox: Sandbox) -> Option<String> {
        let hands = self.shared.tool_gate.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let script = hands.tools.script(&words);
            hands.rules.policy().objection(&script, &sandbox)
        });
        let looked = looking.await;
        looked.unwrap_or_else(|_| Some("the rules cannot be read; see the server's log".to_owned()))
    }

    /// The operator's objection to each of these sandboxes, in their order; `None` where one is allowed. It looks
    /// whether the rules have changed, as [`Rulebook::policy`] does, and may wait for the disk.
    pub fn objections_to_sandboxes(&self, sandboxes: &[Sandbox]) -> Vec<Option<String>> {
        let policy = self.shared.tool_gate.rules.policy();
        let objections = sandboxes.iter().map(|it| policy.objection_to_sandbox(it));
        objections.collect()
    }

    /// The hosts that the operator's rules keep from such commands.
    pub async fn closed_hosts(&self) -> Option<Vec<String>> {
        let hands = self.shared.tool_gate.clone();
        let looking = move || hands.rules.policy().closed_hosts(&[Layer::Managed]);
        tokio::task::spawn_blocking(looking).await.ok()
    }

    /// The commands that calls of a thread left running, oldest first.
    pub fn terminals(&self, id: ThreadId) -> Vec<BackgroundTerminal> {
        self.shared.tool_gate.tools.terminals(id)
    }

    /// Ends one of them, or all if none is named. Whether there was one.
    pub fn end_terminal(&self, id: ThreadId, terminal: Option<&str>) -> bool {
        self.shared.tool_gate.tools.end_terminal(id, terminal)
    }

    /// Leaves every thread in good order, and waits for that, but not for ever: what hangs is cut off.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.shared.tasks());
        let mut orders = JoinSet::new();
        let live: Vec<(ThreadId, Handle)> = self.shared.live().clone().into_iter().collect();
        for (_, handle) in &live {
            let handle = handle.clone();
            // One that has ended is left already.
            orders.spawn(async move { drop(handle.send(TaskMessage::Unload).await) });
        }
        let left = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSE_TIMEOUT, left).await.is_err() {
            tracing::warn!(threads = tasks.len(), "threads that hang were cut off");
            tasks.shutdown().await;
            let mut there = self.shared.live();
            live.iter().for_each(|(id, _)| drop(there.remove(id)));
        }
    }
}

impl ThreadRegistry {
    /// A handle to a live thread. One that is being left is waited for: it can be opened again then.
    pub(crate) async fn wait_live(&self, id: ThreadId) -> Option<Handle> {
        loop {
            let left = self.unloaded.notified();
            let handle = self.live().get(&id).cloned()?;
            if !handle.sender.is_closed() {
                return Some(handle);
            }
            left.await;
        }
    }

    fn opening(&self, id: ThreadId) -> &Turn<()> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        &self.opening[hasher.finish() as usize % OPENINGS]
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Whether nobody who is alive has a thread, except us.
    async fn is_free(&self, thread: &Thread) -> Result<(), AgentError> {
        match thread.owner() {
            Some(node) if node != self.node && self.liveness.is_alive(node).await? => {
                Err(AgentError::OwnedBy {
                    node: node.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Where the records of such threads are.
    pub(crate) fn journal(&self, kept: Retention) -> Arc<dyn Journal> {
        match kept {
            Retention::Durable => self.journal.clone(),
            Retention::Ephemeral => self.memory.clone(),
        }
    }

    /// Where the images of such threads are.
    pub(crate) fn blobs(&self, kept: Retention) -> Arc<dyn Blobs> {
        match kept {
            Retention::Durable => self.blobs.clone(),
            Retention::Ephemeral => self.memory_blobs.clone(),
        }
    }

    /// Where the images of a thread are.
    pub(crate) fn blobs_of(&self, id: ThreadId) -> Arc<dyn Blobs> {
        let kept = self.live().get(&id).map(|handle| handle.retention);
        self.blobs(kept.unwrap_or(Retention::Durable))
    }

    /// Where the records of a thread are. One in memory is live.
    pub(crate) fn journal_of(&self, id: ThreadId) -> Arc<dyn Journal> {
        let kept = self.live().get(&id).map(|handle| handle.retention);
        self.journal(kept.unwrap_or(Retention::Durable))
    }

    pub(crate) fn node(&self, epoch: Epoch) -> WriterNode {
        WriterNode {
            name: self.node.clone(),
            epoch,
            recovery: self.recovery,
        }
    }

    pub(crate) fn run(
        self: &Arc<Self>,
        id: ThreadId,
        owner: ThreadWriter,
        settings: Settings,
        kept: Retention,
        starter: Option<NewSubscriber>,
    ) -> Handle {
        let (sender, inbox) = mpsc::channel(INBOX);
        let (told, snapshot) = watch::channel(Snapshot {
            settings: Arc::new(settings),
            status: None,
        });
        let handle = Handle {
            sender,
            retention: kept,
            snapshot,
            shared: Arc::downgrade(self),
        };
        self.live().insert(id, handle.clone());
        let shared = self.clone();
        let stores = Stores {
            journal: self.journal(kept),
            blobs: self.blobs(kept),
        };
        let task = Task::new(id, self.clone(), stores, owner, inbox, told, starter);
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            // A fault of ours in one thread ends that thread's task and nothing else. When this is cut off,
            // so is the task.
            let mut running = JoinSet::new();
            running.spawn(task.run());
            let (ended, late) = match running.join_next().await {
                Some(Ok(TaskEnd { ended, head, late })) => (Ok((ended, head)), late),
                Some(Err(error)) => (Err(error), Vec::new()),
                None => return,
            };
            match &ended {
                Ok((WriterEnd::Released, _)) => tracing::debug!(thread = %id, "left"),
                Ok((ended, _)) => tracing::info!(thread = %id, ?ended, "task ended"),
                Err(error) => tracing::error!(thread = %id, %error, "task failed"),
            }
            // First what is in the way of another one under its id.
            match (kept, &ended) {
                (Retention::Durable, Ok((WriterEnd::Deleted, head))) => {
                    shared.forget(id, *head).await
                }
                (Retention::Durable, _) => {}
                // Nobody can open it again.
                (Retention::Ephemeral, _) => drop(shared.memory.delete(id).await),
            }
            shared.live().remove(&id);
            shared.unloaded.notify_waiters();
            shared.forward_late(id, late);
        });
        handle
    }

    /// Removes what is left of a thread whose newest record says that it was deleted. If that is cut short, whoever
    /// asks for the thread next does it.
    pub(crate) async fn forget(&self, id: ThreadId, head: Seq) {
        if let Err(error) = self.journal.forget(id, head).await {
            tracing::warn!(thread = %id, %error, "a deleted thread was not removed");
        }
    }

    /// Says something to everyone who does not hear it as a subscriber.
    pub(crate) fn tell_others(
        &self,
        notice: &Delivery,
        is_subscriber: impl Fn(&Arc<dyn Subscriber>) -> bool,
    ) {
        let crowd: Vec<Arc<dyn Subscriber>> = self
            .global_subscribers()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for listener in crowd {
            if !is_subscriber(&listener) {
                listener.deliver(notice);
            }
        }
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, HashMap<ThreadId, Handle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Failures of turns that ended here on a full disk, by thread, each until its end is stored. No
    /// other process takes such a thread as long as this one lives.
    pub(crate) fn unstored_ends(&self) -> MutexGuard<'_, HashMap<ThreadId, Failure>> {
        self.unstored_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn global_subscribers(&self) -> MutexGuard<'_, Vec<Weak<dyn Subscriber>>> {
        self.global_subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A live thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) sender: mpsc::Sender<TaskMessage>,
    pub(crate) retention: Retention,
    snapshot: watch::Receiver<Snapshot>,
    shared: Weak<ThreadRegistry>,
}

/// State of a live thread, as far as it is stored. Handles read it without asking the task.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// How turns run.
    pub(crate) settings: Arc<Settings>,
    /// Its status; `None` before its task has stored the first record.
    pub(crate) status: Option<Status>,
}

impl Handle {
    /// Gives an order. The reply is called once what it means is stored, before anyone else hears of
    /// it. Waits only for a place in the thread's inbox, which keeps the order of orders.
    ///
    /// A turn that is to start is told what there is to say about its surroundings.
    pub async fn send_command<F>(&self, mut command: Command, reply: F)
    where
        F: FnOnce(Result<CommandOutcome, AgentError>) + Send + 'static,
    {
        self.brief(&mut command).await;
        let order = TaskMessage::Command {
            command,
            reply_to: ReplyTo::from(|done: CommandResult<'_>| reply(done.map(|done| done.outcome))),
            after: AfterCommand::KeepLoaded,
        };
        if let Err(mpsc::error::SendError(order)) = self.sender.send(order).await {
            order.refuse(AgentError::Ended);
        }
    }

    /// How turns run, as far as it is stored.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.snapshot.borrow().settings.clone()
    }

    /// Says with a turn that is to start what there is to say about its surroundings.
    pub(crate) async fn brief(&self, command: &mut Command) {
        let settings = self.snapshot.borrow().settings.clone();
        let (settings, briefs) = match command {
            Command::StartTurn(start) => {
                let changed = start.change.clone().applied_to(&settings);
                (Arc::new(changed), &mut start.briefs)
            }
            Command::StartReview(start) => (settings, &mut start.briefs),
            Command::StartQueued(start) => (settings, &mut start.briefs),
            Command::RunShell(start) => (settings, &mut start.briefs),
            _ => return,
        };
        if let Some(shared) = self.shared.upgrade() {
            *briefs = shared
                .environment_reader
                .briefs(&settings, shared.now())
                .await;
        }
    }

    /// Lets a listener hear of the thread from here on, or from after the last number it saw. It is
    /// answered before it hears anything.
    pub async fn subscribe<F>(&self, seen: Option<Seq>, listener: Arc<dyn Subscriber>, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        let subscriber = NewSubscriber {
            subscriber: listener,
            reply: Box::new(|subscribed| {
                reply(subscribed);
                None
            }),
            usage: UsageReport::Omitted,
            comes_back: false,
            seen,
        };
        let subscribe = TaskMessage::Subscribe {
            subscriber,
            change: None,
        };
        if let Err(mpsc::error::SendError(subscribe)) = self.sender.send(subscribe).await {
            subscribe.refuse(AgentError::Ended);
        }
    }

    /// A listener hears no more of the thread. Answers with whether it did.
    pub async fn unsubscribe(&self, listener: Arc<dyn Subscriber>) -> Result<bool, AgentError> {
        let (reply, answer) = oneshot::channel();
        self.send(TaskMessage::Unsubscribe {
            subscriber: listener,
            reply,
        })
        .await?;
        answer.await.map_err(|_| AgentError::Ended)
    }

    /// A listener cannot answer a request. Answers with whether nobody else could.
    pub async fn cannot(
        &self,
        request: RequestNumber,
        listener: Arc<dyn Subscriber>,
    ) -> Result<bool, AgentError> {
        let (reply, answer) = oneshot::channel();
        self.send(TaskMessage::CannotAnswer {
            subscriber: listener,
            request,
            reply,
        })
        .await?;
        answer.await.map_err(|_| AgentError::Ended)
    }

    /// The thread's status, as far as it is stored. The call never waits, however busy the task is.
    pub(crate) fn status(&self) -> Option<Status> {
        let is_staying = !self.sender.is_closed();
        self.snapshot.borrow().status.filter(|_| is_staying)
    }

    /// Looks at the thread as it is stored.
    pub async fn inspect<T, F>(&self, look: F) -> Result<T, AgentError>
    where
        T: Send + 'static,
        F: FnOnce(&Thread) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let look = move |thread: &Thread| drop(reply.send(look(thread)));
        self.send(TaskMessage::Inspect(Box::new(look))).await?;
        answer.await.map_err(|_| AgentError::Ended)
    }

    async fn send(&self, message: TaskMessage) -> Result<(), AgentError> {
        self.sender
            .send(message)
            .await
            .map_err(|_| AgentError::Ended)
    }
}

impl std::fmt::Debug for TaskMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Command { .. } => "Order",
            Self::Subscribe { .. } => "Subscribe",
            Self::Unsubscribe { .. } => "Unsubscribe",
            Self::CannotAnswer { .. } => "Cannot",
            Self::Inspect(_) => "Look",
            Self::Unload => "Leave",
        })
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} live threads", self.shared.live().len())
    }
}
