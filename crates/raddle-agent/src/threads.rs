//! The loaded threads, and handles to them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use raddle_core::policy::Layer;
use raddle_core::ports::{
    BackgroundTerminal, Blobs, BoxFuture, Hooks, Journal, Model, Pages, Plugins, ReadError,
    Rulebook, Skills, StoreTimeouts, Tools, Webhook,
};
use raddle_core::{
    Command, CommandOutcome, CursorStatus, Epoch, Failure, IdempotentRequest, Input, ItemId,
    Recovery, Refusal, RequestNumber, Sandbox, Seq, Settings, Status, Tail, Thread, ThreadId,
    ThreadStarted, ThreadWriter, Timestamp, WriterEnd, WriterNode,
};
use raddle_protocol::Notification;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

use crate::asked_folders::AskedFolders;
use crate::context::HistoryBudget;
use crate::counters::Counters;
use crate::environment::{EnvironmentReader, Instructions};
use crate::hooks::{HookRunner, InputNotices, NoticeSink, SessionStart};
use crate::interrupts::WaitingInterrupts;
use crate::open::{open, read_on};
use crate::skills::may_name_skill;
use crate::task::{AfterCommand, NewSubscriber, Stores, Task, TaskEnd, TaskMessage, UsageReport};
use crate::thread_blobs::ThreadBlobs;
use crate::tool_gate::ToolGate;
use crate::{AgentError, CommandResult, Delivery, Liveness, ReplyTo, Subscriber};

/// Capacity of a thread's inbox.
const INBOX: usize = 64;

/// Number of locks for loading threads. Threads share them by the hash of their id.
const OPENINGS: usize = 64;

/// Limit: time for unloading threads at shutdown, after the time that a loaded thread waits for an
/// unavailable journal; beyond it, threads that hang are abandoned and logged; the next process
/// treats their owner as dead.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The dependencies of the agent.
pub struct Options {
    /// Journal of durable threads.
    pub journal: Arc<dyn Journal>,
    /// Lists and pages of durable threads.
    pub pages: Arc<dyn Pages>,
    /// Blobs of durable threads: images and long output.
    pub blobs: Arc<dyn Blobs>,
    /// Journal of ephemeral threads, which end with the process.
    pub memory: Arc<dyn Journal>,
    /// Pages of ephemeral threads.
    pub memory_pages: Arc<dyn Pages>,
    /// Blobs of ephemeral threads.
    pub memory_blobs: Arc<dyn Blobs>,
    /// The model that answers turns.
    pub model: Arc<dyn Model>,
    /// Tools that the agent itself runs.
    pub tools: Arc<dyn Tools>,
    /// The rules for using them.
    pub rules: Arc<dyn Rulebook>,
    /// Webhook for requests while no client is attached, if the rules configure one.
    pub webhook: Arc<dyn Webhook>,
    /// Hooks on events of threads.
    pub hooks: Arc<dyn Hooks>,
    /// The skills that the model may use.
    pub skills: Arc<dyn Skills>,
    /// The plugins, whose permissions the user approves.
    pub plugins: Arc<dyn Plugins>,
    /// Source of the current time.
    pub clock: fn() -> Timestamp,
    /// Name of this process among those that share the journal.
    pub node: String,
    /// Liveness of the other processes.
    pub liveness: Arc<dyn Liveness>,
    /// Default recovery of a turn whose owner died. A thread's settings may override it.
    pub recovery: Recovery,
}

/// Reply to a new subscriber.
#[derive(Debug)]
pub struct SubscribeResult {
    /// Current state of the thread.
    pub thread: Box<Thread>,
    /// Whether the subscriber's cursor is valid.
    pub cursor: CursorStatus,
    /// Last record that the subscriber knows. It needs the records after this one, up to `head`.
    pub after: Seq,
    /// Last record that it must read from the journal. Later ones follow as live events.
    pub head: Seq,
}

/// Lifetime of a thread's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    Durable,
    Ephemeral,
}

/// All loaded threads. Cheap to clone.
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
    pub(crate) plugins: Arc<dyn Plugins>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) node: String,
    pub(crate) liveness: Arc<dyn Liveness>,
    recovery: Recovery,
    live: Mutex<HashMap<ThreadId, Handle>>,
    unstored_ends: Mutex<HashMap<ThreadId, Failure>>,
    /// Notified when a thread is unloaded.
    unloaded: Notify,
    pub(crate) interrupts: Arc<WaitingInterrupts>,
    /// Locks that ensure that a thread is loaded once. Threads share them by hash, so that a slow
    /// load delays few others.
    opening: [AsyncMutex<()>; OPENINGS],
    /// Subscribers to global notifications.
    global_subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
    tasks: Mutex<JoinSet<()>>,
    pub(crate) environment_reader: EnvironmentReader,
    /// The folders whose trust clients are being asked about.
    pub(crate) asked_folders: AskedFolders,
    pub(crate) history_budget: HistoryBudget,
    pub(crate) counters: Counters,
    /// Id of a thread that never exists, for probing the journal.
    pub(crate) probe_thread: ThreadId,
}

impl Threads {
    /// Creates the registry without loaded threads.
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
            hooks,
            skills,
            plugins,
            clock,
            node,
            liveness,
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
                    hooks,
                }),
                plugins,
                clock,
                node,
                liveness,
                recovery,
                live: Mutex::default(),
                unstored_ends: Mutex::default(),
                unloaded: Notify::new(),
                interrupts: WaitingInterrupts::new(),
                opening: std::array::from_fn(|_| AsyncMutex::default()),
                global_subscribers: Mutex::default(),
                tasks: Mutex::default(),
                environment_reader: EnvironmentReader::new(skills),
                asked_folders: AskedFolders::default(),
                history_budget: HistoryBudget::default(),
                counters: Counters::default(),
                probe_thread: ThreadId::mint(),
            }),
        }
    }

    /// Subscribes to global notifications, as long as the subscriber is alive.
    pub fn subscribe_global(&self, subscriber: &Arc<dyn Subscriber>) {
        let mut subscribers = self.shared.global_subscribers();
        subscribers.retain(|it| it.strong_count() > 0);
        subscribers.push(Arc::downgrade(subscriber));
    }

    /// Sends an event that is not a record to all clients.
    pub fn announce(&self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.shared.notify_others(&notice, |_| false);
    }

    /// Starts a thread. Once it is stored, the subscriber receives the reply, and then events.
    pub fn start<F>(
        &self,
        start: ThreadStarted,
        subscriber: Arc<dyn Subscriber>,
        reply: F,
    ) -> Handle
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        self.start_for(None, start, subscriber, reply)
    }

    /// Starts a thread for a request that may be repeated; the thread stores the request. The id
    /// must be unused.
    pub fn start_for<F>(
        &self,
        request: Option<IdempotentRequest>,
        start: ThreadStarted,
        subscriber: Arc<dyn Subscriber>,
        reply: F,
    ) -> Handle
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        let id = start.thread;
        let retention = if start.ephemeral {
            Retention::Ephemeral
        } else {
            Retention::Durable
        };
        let node = self.shared.node(Epoch(1));
        let settings = start.settings.clone();
        let now = self.shared.now();
        let writer = ThreadWriter::start(start, node, now);
        let writer = match request {
            Some(request) => writer.with_idempotency(request, now),
            None => writer,
        };
        let starter = NewSubscriber {
            subscriber,
            reply: Box::new(|subscribed| {
                reply(subscribed);
                None
            }),
            usage: UsageReport::Omitted,
            is_returning: false,
            cursor: None,
        };
        self.shared
            .run(id, writer, settings, retention, Some(starter))
    }

    /// Returns a handle to a thread, and loads the thread if necessary. Fails if another live node
    /// owns it; takes over the thread of a dead node.
    pub async fn get(&self, id: ThreadId) -> Result<Handle, AgentError> {
        if let Some(handle) = self.shared.wait_live(id).await {
            return Ok(handle);
        }
        let _guard = self.shared.opening(id).lock().await;
        if let Some(handle) = self.shared.wait_live(id).await {
            return Ok(handle);
        }
        let (thread, tail) = self.shared.take(id).await?;
        let node = self.shared.node(Epoch(thread.epoch().0 + 1));
        let head = thread.head();
        let settings = thread.settings().clone();
        let now = self.shared.now();
        let writer = match self.shared.unstored_ends().remove(&id) {
            Some(failure) => ThreadWriter::open_to_fail(thread, node, failure, now),
            None => ThreadWriter::open(thread, head, node, now),
        };
        let writer = writer.since_base(tail);
        let retention = Retention::Durable;
        Ok(self.shared.run(id, writer, settings, retention, None))
    }

    /// Returns the instructions of a workspace for a folder; empty if reading times out.
    pub async fn instructions(&self, cwd: &str) -> Instructions {
        let read = self.shared.environment_reader.instructions(cwd).await;
        read.unwrap_or_default()
    }

    /// Returns why the operator's rules deny a command that a client runs itself in this sandbox,
    /// or `None` if it is allowed.
    pub async fn objection(&self, words: Vec<String>, sandbox: Sandbox) -> Option<String> {
        let gate = self.shared.tool_gate.clone();
        let check = tokio::task::spawn_blocking(move || {
            let script = gate.tools.script(&words);
            gate.rules.policy().objection(&script, &sandbox)
        });
        let objection = check.await;
        objection
            .unwrap_or_else(|_| Some("the rules cannot be read; see the server's log".to_owned()))
    }

    /// Returns why the rules deny a tool, known by these names, that a client calls itself in a
    /// thread with these settings, or `None` if it is allowed.
    pub async fn objection_to_tool(&self, names: &[String], settings: &Settings) -> Option<String> {
        let policy = self.shared.tool_gate.policy().await;
        match policy {
            Some(policy) => policy.objection_to_tool(names, settings),
            None => Some("the rules cannot be read; see the server's log".to_owned()),
        }
    }

    /// Returns why the operator's rules deny each of these sandboxes, in order; `None` where one is
    /// allowed. It checks whether the rules have changed, as [`Rulebook::policy`] does, and may
    /// block on the disk.
    pub fn objections_to_sandboxes(&self, sandboxes: &[Sandbox]) -> Vec<Option<String>> {
        let policy = self.shared.tool_gate.rules.policy();
        let objections = sandboxes.iter().map(|it| policy.objection_to_sandbox(it));
        objections.collect()
    }

    /// Returns the hosts that the operator's rules block for commands that a client runs itself.
    pub async fn closed_hosts(&self) -> Option<Vec<String>> {
        let gate = self.shared.tool_gate.clone();
        let read_hosts = move || gate.rules.policy().closed_hosts(&[Layer::Managed]);
        tokio::task::spawn_blocking(read_hosts).await.ok()
    }

    /// Background commands of a thread, oldest first.
    pub fn terminals(&self, id: ThreadId) -> Vec<BackgroundTerminal> {
        self.shared.tool_gate.tools.terminals(id)
    }

    /// Ends a background command of a thread, or all if none is named. Returns whether there was
    /// one.
    pub fn end_terminal(&self, id: ThreadId, terminal: Option<&str>) -> bool {
        self.shared.tool_gate.tools.end_terminal(id, terminal)
    }

    /// Time limits of the journal of durable threads.
    pub fn timeouts(&self) -> StoreTimeouts {
        self.shared.journal.timeouts()
    }

    /// Unloads every thread gracefully, and closes the journal. Threads that do not end in time are
    /// aborted.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.shared.tasks());
        let mut unloads = JoinSet::new();
        let live: Vec<(ThreadId, Handle)> = self.shared.live().clone().into_iter().collect();
        for (_, handle) in &live {
            let handle = handle.clone();
            // A send fails if the task has ended already.
            unloads.spawn(async move { drop(handle.send(TaskMessage::Unload).await) });
        }
        let all_ended = async { while tasks.join_next().await.is_some() {} };
        let close_timeout = self.timeouts().outage + CLOSE_TIMEOUT;
        let closed = tokio::time::timeout(close_timeout, all_ended).await;
        if closed.is_err() {
            tracing::warn!(
                threads = tasks.len(),
                "threads that did not end in time were aborted"
            );
            tasks.shutdown().await;
            let mut registered = self.shared.live();
            live.iter().for_each(|(id, _)| drop(registered.remove(id)));
        }
        self.shared.journal.close().await;
    }
}

impl ThreadRegistry {
    /// Returns the handle of a loaded thread. Waits for a thread that is being unloaded, so that it
    /// can be loaded again.
    pub(crate) async fn wait_live(&self, id: ThreadId) -> Option<Handle> {
        loop {
            let unloaded = self.unloaded.notified();
            let handle = self.live().get(&id).cloned()?;
            if !handle.sender.is_closed() {
                return Some(handle);
            }
            unloaded.await;
        }
    }

    fn opening(&self, id: ThreadId) -> &AsyncMutex<()> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        &self.opening[hasher.finish() as usize % OPENINGS]
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Folds a thread, and takes it from the node that owned it. Fails if that node is alive.
    async fn take(&self, id: ThreadId) -> Result<(Thread, Tail), AgentError> {
        let journal = &*self.journal;
        let (mut thread, mut tail) = open(journal, id).await?;
        loop {
            // A fork that was interrupted before its first own record does not exist yet.
            if thread.id() != Some(id) {
                return Err(ReadError::NotFound.into());
            }
            if thread.is_deleted() {
                self.forget(id, thread.head()).await;
                return Err(Refusal::Deleted.into());
            }
            self.ensure_not_owned(&thread).await?;
            let former = thread.owner().filter(|node| *node != self.node);
            let head = journal.take(id, former).await?;
            // Records that were stored since may be those of a third node, which is checked and
            // taken from in the same way.
            if !read_on(journal, id, head, &mut thread, &mut tail).await? {
                return Ok((thread, tail));
            }
        }
    }

    /// Fails if another live process owns the thread.
    async fn ensure_not_owned(&self, thread: &Thread) -> Result<(), AgentError> {
        match thread.owner() {
            Some(node) if node != self.node && self.liveness.is_alive(node).await? => {
                Err(AgentError::OwnedBy {
                    node: node.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Journal of threads with this retention.
    pub(crate) fn journal(&self, retention: Retention) -> Arc<dyn Journal> {
        match retention {
            Retention::Durable => self.journal.clone(),
            Retention::Ephemeral => self.memory.clone(),
        }
    }

    /// Blobs of a thread with this retention.
    pub(crate) fn blobs(&self, retention: Retention, thread: ThreadId) -> ThreadBlobs {
        let store = match retention {
            Retention::Durable => self.blobs.clone(),
            Retention::Ephemeral => self.memory_blobs.clone(),
        };
        ThreadBlobs { store, thread }
    }

    /// Blobs of a thread. An ephemeral thread is always loaded.
    pub(crate) fn blobs_of(&self, id: ThreadId) -> ThreadBlobs {
        let retention = self.live().get(&id).map(|handle| handle.retention);
        self.blobs(retention.unwrap_or(Retention::Durable), id)
    }

    /// Journal of a thread. An ephemeral thread is always loaded.
    pub(crate) fn journal_of(&self, id: ThreadId) -> Arc<dyn Journal> {
        let retention = self.live().get(&id).map(|handle| handle.retention);
        self.journal(retention.unwrap_or(Retention::Durable))
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
        writer: ThreadWriter,
        settings: Settings,
        retention: Retention,
        starter: Option<NewSubscriber>,
    ) -> Handle {
        self.tool_gate.prepare(&settings);
        let (sender, inbox) = mpsc::channel(INBOX);
        let (snapshot_tx, snapshot) = watch::channel(Snapshot {
            settings: Arc::new(settings),
            status: None,
        });
        let handle = Handle {
            sender,
            retention,
            snapshot,
            session: SessionStart::new(writer.stored() == Seq::ZERO),
            shared: Arc::downgrade(self),
        };
        self.live().insert(id, handle.clone());
        let shared = self.clone();
        let stores = Stores {
            journal: self.journal(retention),
            blobs: self.blobs(retention, id),
        };
        let task = Task::new(
            id,
            self.clone(),
            stores,
            writer,
            inbox,
            snapshot_tx,
            starter,
        );
        // The task outlives the request that loads the thread.
        let span = tracing::info_span!(target: crate::SPANS, parent: None, "thread", %id);
        let task = task.run().instrument(span.clone());
        let running = async move {
            // A panic ends only the task of its own thread. Aborting this wrapper also aborts the
            // task.
            let mut tasks = JoinSet::new();
            tasks.spawn(task);
            let (ended, late) = match tasks.join_next().await {
                Some(Ok(TaskEnd { ended, head, late })) => (Ok((ended, head)), late),
                Some(Err(error)) => (Err(error), Vec::new()),
                None => return,
            };
            match &ended {
                Ok((WriterEnd::Released, _)) => tracing::debug!("left"),
                Ok((ended, _)) => tracing::info!(?ended, "task ended"),
                Err(error) => tracing::error!(thread = %id, %error, "task failed"),
            }
            // First remove what would block another thread with the same id.
            match (retention, &ended) {
                (Retention::Durable, Ok((WriterEnd::Deleted, head))) => {
                    shared.forget(id, *head).await
                }
                (Retention::Durable, _) => {}
                // An ephemeral thread cannot be loaded again.
                (Retention::Ephemeral, _) => drop(shared.memory.delete(id).await),
            }
            shared.live().remove(&id);
            shared.unloaded.notify_waiters();
            shared.forward_late(id, late);
        };
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(running.instrument(span));
        handle
    }

    /// Deletes the rows and blobs of a thread whose newest record is its deletion. If that is
    /// interrupted, the next access to the thread repeats it.
    pub(crate) async fn forget(&self, id: ThreadId, head: Seq) {
        if let Err(error) = self.journal.forget(id, head).await {
            tracing::warn!(thread = %id, %error, "a deleted thread was not removed");
        }
    }

    /// Sends an event to the clients that do not receive it as subscribers.
    pub(crate) fn notify_others(
        &self,
        notice: &Delivery,
        is_subscriber: impl Fn(&Arc<dyn Subscriber>) -> bool,
    ) {
        let subscribers: Vec<Arc<dyn Subscriber>> = self
            .global_subscribers()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for subscriber in subscribers {
            if !is_subscriber(&subscriber) {
                subscriber.deliver(notice);
            }
        }
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, HashMap<ThreadId, Handle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Failures of turns that ended here on full storage, by thread, until their end is stored. No
    /// other process takes over such a thread while this one is alive.
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

/// Handle of a loaded thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) sender: mpsc::Sender<TaskMessage>,
    pub(crate) retention: Retention,
    snapshot: watch::Receiver<Snapshot>,
    session: Arc<SessionStart>,
    shared: Weak<ThreadRegistry>,
}

/// Stored state of a loaded thread. Handles read it without a message to the task.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) settings: Arc<Settings>,
    /// Status; `None` before the task has stored its first record.
    pub(crate) status: Option<Status>,
}

/// Sends notifications of hooks before the command that they are about.
struct InboxNotices(mpsc::Sender<TaskMessage>);

impl NoticeSink for InboxNotices {
    fn send(&self, notification: Notification) -> BoxFuture<'_, ()> {
        let notice = TaskMessage::Notice(Box::new(notification));
        Box::pin(async move { drop(self.0.send(notice).await) })
    }
}

impl Handle {
    /// Sends a command. The reply is called once the resulting records are stored, before any
    /// subscriber is notified. Waits only for a slot in the thread's inbox, which keeps commands in
    /// order.
    ///
    /// A command that starts a turn also carries briefs: notes to the model on its folder, date,
    /// permissions, `AGENTS.md` files and skills.
    pub async fn send_command<F>(&self, mut command: Command, reply: F)
    where
        F: FnOnce(Result<CommandOutcome, AgentError>) + Send + 'static,
    {
        self.brief(&mut command).await;
        let message = TaskMessage::Command {
            command: Box::new(command),
            reply_to: ReplyTo::from(|result: CommandResult<'_>| {
                reply(result.map(|done| done.outcome))
            }),
            after: AfterCommand::KeepLoaded,
            span: Span::current(),
        };
        if let Err(mpsc::error::SendError(message)) = self.sender.send(message).await {
            message.refuse(AgentError::Ended);
        }
    }

    /// Stored settings of turns.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.snapshot.borrow().settings.clone()
    }

    /// Adds briefs about the environment to a command that starts a turn, or that names a skill.
    pub(crate) async fn brief(&self, command: &mut Command) {
        let mut settings = self.snapshot.borrow().settings.clone();
        let mut input = Vec::new();
        let briefs = match command {
            Command::StartTurn(start) => {
                settings = Arc::new(start.change.clone().applied_to(&settings));
                let message = start.message.as_ref();
                input = message.map(|it| it.input.clone()).unwrap_or_default();
                &mut start.briefs
            }
            Command::Steer(steer) if may_name_skill(&steer.message.input) => {
                input.clone_from(&steer.message.input);
                &mut steer.briefs
            }
            Command::StartReview(start) => &mut start.briefs,
            Command::StartQueued(start) => {
                input = self.queued_input(start.item.clone()).await;
                &mut start.briefs
            }
            Command::RunShell(start) => &mut start.briefs,
            _ => return,
        };
        if let Some(shared) = self.shared.upgrade() {
            *briefs = shared
                .environment_reader
                .briefs(&settings, input, shared.now())
                .await;
        }
    }

    /// Runs the hooks on the input of a command, if it has any. Fails if a hook rejects it, or if
    /// an interrupt comes while a hook runs.
    pub(crate) async fn check_input(
        &self,
        thread: ThreadId,
        command: &mut Command,
    ) -> Result<(), AgentError> {
        let Some(shared) = self.shared.upgrade() else {
            return Ok(());
        };
        let notices = Arc::new(InputNotices::new(InboxNotices(self.sender.clone())));
        let runner = HookRunner {
            hooks: shared.tool_gate.hooks.clone(),
            notices: notices.clone(),
            thread,
            turn: None,
        };
        let mut settings = self.settings();
        if let Command::StartTurn(start) = command {
            settings = Arc::new(start.change.clone().applied_to(&settings));
        }
        let interrupted = async {
            notices.hook_runs().await;
            shared.interrupts.any_of(thread).await;
        };
        tokio::select! {
            biased;
            checked = runner.check_input(&self.session, &settings, command) => return checked,
            () = interrupted => {}
        }
        notices.end_interrupted(shared.now()).await;
        Err(AgentError::InputInterrupted)
    }

    /// Returns queued input, the next without an id; empty if there is none.
    async fn queued_input(&self, item: Option<ItemId>) -> Vec<Input> {
        let inspect = move |thread: &Thread| {
            let mut queue = thread.queue().iter();
            let queued = queue.find(|it| item.as_ref().is_none_or(|id| it.item == *id));
            queued.map(|it| it.input.clone()).unwrap_or_default()
        };
        self.inspect(inspect).await.unwrap_or_default()
    }

    /// Subscribes from now on, or after a cursor. The subscriber receives the reply before any
    /// event.
    pub async fn subscribe<F>(&self, cursor: Option<Seq>, subscriber: Arc<dyn Subscriber>, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) + Send + 'static,
    {
        let subscriber = NewSubscriber {
            subscriber,
            reply: Box::new(|subscribed| {
                reply(subscribed);
                None
            }),
            usage: UsageReport::Omitted,
            is_returning: false,
            cursor,
        };
        let subscribe = TaskMessage::Subscribe {
            subscriber,
            change: None,
        };
        if let Err(mpsc::error::SendError(subscribe)) = self.sender.send(subscribe).await {
            subscribe.refuse(AgentError::Ended);
        }
    }

    /// Removes a subscriber. Returns whether it was subscribed.
    pub async fn unsubscribe(&self, subscriber: Arc<dyn Subscriber>) -> Result<bool, AgentError> {
        let (reply, answer) = oneshot::channel();
        self.send(TaskMessage::Unsubscribe { subscriber, reply })
            .await?;
        answer.await.map_err(|_| AgentError::Ended)
    }

    /// Records that a subscriber cannot answer a request. Returns whether no other subscriber can
    /// either.
    pub async fn note_cannot_answer(
        &self,
        request: RequestNumber,
        subscriber: Arc<dyn Subscriber>,
    ) -> Result<bool, AgentError> {
        let (reply, answer) = oneshot::channel();
        self.send(TaskMessage::CannotAnswer {
            subscriber,
            request,
            reply,
        })
        .await?;
        answer.await.map_err(|_| AgentError::Ended)
    }

    /// Stored status of the thread. Never waits, however busy the task is.
    pub(crate) fn status(&self) -> Option<Status> {
        let is_open = !self.sender.is_closed();
        self.snapshot.borrow().status.filter(|_| is_open)
    }

    /// Reads the thread as it is stored.
    pub async fn inspect<T, F>(&self, inspect: F) -> Result<T, AgentError>
    where
        T: Send + 'static,
        F: FnOnce(&Thread) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let inspect = move |thread: &Thread| drop(reply.send(inspect(thread)));
        self.send(TaskMessage::Inspect(Box::new(inspect))).await?;
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
            Self::Command { .. } => "Command",
            Self::Subscribe { .. } => "Subscribe",
            Self::Unsubscribe { .. } => "Unsubscribe",
            Self::CannotAnswer { .. } => "CannotAnswer",
            Self::Inspect(_) => "Inspect",
            Self::Notice(_) => "Notice",
            Self::Unload => "Unload",
        })
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} live threads", self.shared.live().len())
    }
}
