//! The task of one live thread: the only writer of its journal.

mod catch_up;
mod effects;
mod progress;
mod storage_full;
mod subscribe;
mod subscribers;
mod unattended;
mod unload;

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{AppendError, Blobs, Journal};
use raddle_core::{
    ChangeSettings, Command, CursorStatus, Effect, Envelope, Event, IdempotentRequest, ItemId,
    RecordBody, Refusal, RequestNumber, Seq, Step, SubscriptionStart, Thread, ThreadId,
    ThreadWriter, Token, WriterAction, WriterEnd,
};
use raddle_protocol::ThreadClosedNotification;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::catch_up::{CatchUps, Subscription};
use self::progress::Progress;
use self::subscribe::PendingSubscriber;
pub(crate) use self::subscribe::{NewSubscriber, UsageReport};
use self::unload::UnloadReason;
use crate::context::History;
use crate::images::show_told;
use crate::threads::{AgentError, AppliedCommand, CommandResult, Snapshot, ThreadRegistry};
use crate::{ReplyTo, Subscriber};

/// How many reports of work may wait; whoever reports waits for room.
const REPORTS: usize = 64;

/// How long the journal is left alone after it was not available.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long the journal may be away before its thread is left; whoever waits is told, and whoever comes
/// later finds what is stored.
pub(crate) const JOURNAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for who begins a thread: nobody else knows of it yet.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// What comes into a task.
pub(crate) enum TaskMessage {
    Command {
        command: Command,
        reply_to: ReplyTo,
        after: AfterCommand,
    },
    Subscribe {
        subscriber: NewSubscriber,
        /// What changes with it, if nobody hears of the thread and nothing runs in it.
        change: Option<Box<ChangeSettings>>,
    },
    /// Answered with whether it had listened.
    Unsubscribe {
        subscriber: Arc<dyn Subscriber>,
        reply: oneshot::Sender<bool>,
    },
    /// A listener cannot answer a request. Answered with whether nobody else could.
    CannotAnswer {
        subscriber: Arc<dyn Subscriber>,
        request: RequestNumber,
        reply: oneshot::Sender<bool>,
    },
    /// A look at the thread as it is stored.
    Inspect(InspectFn),
    /// The thread is to be left in good order.
    Unload,
}

/// What becomes of the task once an order is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterCommand {
    KeepLoaded,
    /// The thread is left: it need no longer be in memory.
    Unload,
}

impl TaskMessage {
    /// Whoever sent it is told why nothing came of it.
    pub(crate) fn refuse(self, error: AgentError) {
        match self {
            Self::Command { reply_to: owed, .. } => (owed.reply)(Err(error)),
            Self::Subscribe { subscriber, .. } => drop((subscriber.reply)(Err(error))),
            // Whoever waits for these sees that nobody will answer.
            Self::Unsubscribe { .. }
            | Self::CannotAnswer { .. }
            | Self::Inspect(_)
            | Self::Unload => {}
        }
    }
}

/// Someone's look at the thread.
pub(crate) type InspectFn = Box<dyn FnOnce(&Thread) + Send>;

/// Answers a caller, on the spot: whoever is told of what the caller did is told after this.
pub(crate) type CommandReply = Box<dyn FnOnce(CommandResult<'_>) + Send>;

enum Caller {
    Command(CommandReply, AfterCommand),
    Subscribe(NewSubscriber),
}

/// How a task came to its end.
pub(crate) struct TaskEnd {
    pub(crate) ended: WriterEnd,
    /// The newest record that it stored.
    pub(crate) head: Seq,
    /// What came too late for it, and is for whoever opens the thread next.
    pub(crate) late: Vec<TaskMessage>,
}

/// Where a thread's records and images are.
pub(crate) struct Stores {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: Arc<dyn Blobs>,
}

pub(crate) struct Task {
    id: ThreadId,
    shared: Arc<ThreadRegistry>,
    journal: Arc<dyn Journal>,
    blobs: Arc<dyn Blobs>,
    owner: ThreadWriter,
    inbox: mpsc::Receiver<TaskMessage>,
    reports: mpsc::Receiver<Command>,
    /// For those who report.
    reporter: mpsc::Sender<Command>,
    callers: BTreeMap<Token, Caller>,
    /// Who began the thread, until its beginning is stored.
    starter: Option<NewSubscriber>,
    /// What was stored before it began.
    initial_head: Seq,
    /// Those who hear of the thread.
    subscriptions: Vec<Subscription>,
    catch_ups: CatchUps,
    progress: Progress,
    /// Those who cannot answer a request.
    unable: Vec<(RequestNumber, Arc<dyn Subscriber>)>,
    /// Requests that nobody is there to answer, each until its time is over.
    unattended: BTreeMap<RequestNumber, AbortHandle>,
    /// Those who are being answered and hear nothing yet.
    pending_subscribers: VecDeque<PendingSubscriber>,
    /// What goes out once they are answered.
    deferred: Vec<WriterAction>,
    inspections: Vec<InspectFn>,
    /// What came when the owner was at its end already.
    late: Vec<TaskMessage>,
    /// Where handles read what they need not ask for.
    snapshot: watch::Sender<Snapshot>,
    work: BTreeMap<Effect, AbortHandle>,
    /// Tools that run, each until it is told to stop: letting go tells it.
    stops: BTreeMap<ItemId, watch::Sender<()>>,
    history: Arc<History>,
    tokens: u64,
    /// Since when the journal takes nothing.
    unavailable_since: Option<Instant>,
    /// Why the last append failed, if it did.
    failed: Option<AppendError>,
    /// Whether nothing more is taken in: no handle is left, or the thread is.
    closed: bool,
    /// Whether it was said so to the owner.
    released: bool,
    /// Set when the thread is left because it need not be in memory.
    unloading: Option<UnloadReason>,
    /// Since when nobody listens and nothing happens.
    idle_since: Option<Instant>,
    /// Whether anyone was told that the thread is in memory.
    is_known: bool,
}

impl Task {
    pub(crate) fn new(
        id: ThreadId,
        shared: Arc<ThreadRegistry>,
        stores: Stores,
        owner: ThreadWriter,
        inbox: mpsc::Receiver<TaskMessage>,
        snapshot: watch::Sender<Snapshot>,
        starter: Option<NewSubscriber>,
    ) -> Self {
        let (reporter, reports) = mpsc::channel(REPORTS);
        let initial_head = owner.stored();
        let shelf = shared.history_budget.clone();
        let history = match initial_head {
            Seq::ZERO => History::of_new(shelf),
            _ => History::new(shelf),
        };
        Self {
            id,
            shared,
            journal: stores.journal,
            blobs: stores.blobs,
            owner,
            inbox,
            reports,
            reporter,
            callers: BTreeMap::new(),
            starter,
            initial_head,
            subscriptions: Vec::new(),
            catch_ups: CatchUps::default(),
            progress: Progress::default(),
            unable: Vec::new(),
            unattended: BTreeMap::new(),
            pending_subscribers: VecDeque::new(),
            deferred: Vec::new(),
            inspections: Vec::new(),
            late: Vec::new(),
            snapshot,
            work: BTreeMap::new(),
            stops: BTreeMap::new(),
            history: Arc::new(history),
            tokens: 0,
            unavailable_since: None,
            failed: None,
            closed: false,
            released: false,
            unloading: None,
            idle_since: None,
            is_known: false,
        }
    }

    /// Runs until someone else has the thread, or it is left.
    pub(crate) async fn run(mut self) -> TaskEnd {
        loop {
            self.let_in().await;
            self.finish_catch_ups().await;
            self.look_at_progress();
            self.take_what_is_there();
            self.release();
            let now = self.shared.now();
            match self.owner.step(now) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let journal = self.journal.clone();
                    let append = journal.append(self.id, after, &records, class);
                    let shared = self.shared.clone();
                    let appending = shared.counters.append();
                    let result = self.during(append).await;
                    appending.ended(class, &result);
                    if let Err(error) = &result {
                        tracing::warn!(thread = %self.id, %error, "append failed");
                    }
                    self.failed = result.as_ref().err().cloned();
                    if self.failed.is_none() {
                        let lineage = self.owner.thread().lineage();
                        self.history.follow(lineage, after, &records);
                    }
                    let outs = self.owner.appended(result);
                    self.show_and_act(outs).await;
                    // While text streams the thread may never come to rest.
                    if self.failed.is_none() {
                        self.run_inspections();
                    }
                    match self.failed {
                        None => self.unavailable_since = None,
                        Some(AppendError::Unavailable(_)) => self.wait_while_unavailable().await,
                        Some(AppendError::Full(_)) if self.owner.fails().is_some() => {
                            self.wait_for_space().await;
                        }
                        // The head tells whether it is there.
                        Some(AppendError::Unknown(_)) => {
                            self.unavailable_since.get_or_insert_with(Instant::now);
                        }
                        Some(_) => {}
                    }
                }
                Step::ReadHead => {
                    let journal = self.journal.clone();
                    let head = self.during(journal.head(self.id)).await;
                    let stored = self.owner.stored();
                    match head {
                        Ok(head) => {
                            let outs = self.owner.head_is(head);
                            self.show_and_act(outs).await;
                        }
                        Err(error) => {
                            tracing::warn!(thread = %self.id, %error, "the head cannot be read");
                        }
                    }
                    if self.owner.stored() > stored {
                        self.unavailable_since = None;
                    } else {
                        self.wait_while_unavailable().await;
                    }
                }
                Step::Do(outs) => self.show_and_act(outs).await,
                Step::Wait(until) => {
                    self.run_inspections();
                    self.wait(until.map(|at| at.since(now))).await;
                }
                Step::Ended(ended) => {
                    if self.fail_turn(&ended).await {
                        continue;
                    }
                    if let Some(starter) = self.starter.take() {
                        drop((starter.reply)(Err(match &ended {
                            WriterEnd::NotStored(_) if self.unavailable_since.is_some() => {
                                AgentError::Unavailable
                            }
                            WriterEnd::NotStored(why) => Refusal::NotStored(why.clone()).into(),
                            _ => AgentError::Ended,
                        })));
                    }
                    // What was not stored is not shown: whoever looks then looks into the journal.
                    match self.owner.settled() {
                        Some(_) => self.run_inspections(),
                        None => self.inspections.clear(),
                    }
                    self.say_why(&ended);
                    return self.finish(ended).await;
                }
            }
        }
    }

    /// Acts once the images in what is told are there.
    async fn show_and_act(&mut self, mut outs: Vec<WriterAction>) {
        for out in &mut outs {
            if let WriterAction::Tell(told) = out {
                for notification in &mut told.notifications {
                    let blobs = self.blobs.clone();
                    self.during(show_told(&*blobs, notification)).await;
                }
            }
        }
        self.act(outs);
    }

    fn run_inspections(&mut self) {
        for look in self.inspections.drain(..) {
            look(self.owner.thread());
        }
    }

    /// Waits for the journal, and meanwhile takes what comes in: an interrupt must not wait behind a
    /// slow disk.
    async fn during<T>(&mut self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        loop {
            let is_wanted = self.is_progress_wanted();
            tokio::select! {
                biased;
                done = &mut what => return done,
                message = self.inbox.recv(), if !self.closed => self.receive(message),
                () = self.progress.due(), if is_wanted => self.say_progress(),
            }
        }
    }

    /// Leaves the journal alone for a moment, and the thread if it took nothing for too long.
    async fn wait_while_unavailable(&mut self) {
        let since = *self.unavailable_since.get_or_insert_with(Instant::now);
        let patience = match self.starter {
            Some(_) => START_TIMEOUT,
            None => JOURNAL_TIMEOUT,
        };
        if since.elapsed() < patience {
            return self.during(tokio::time::sleep(RETRY_DELAY)).await;
        }
        let outs = self
            .owner
            .give_up("it was not available for too long".to_owned());
        self.act(outs);
    }

    /// Waits for something to come in, or for time to pass.
    async fn wait(&mut self, ms: Option<i64>) {
        let pause = async {
            match ms.map(u64::try_from) {
                Some(Ok(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        };
        let alone = self.idle_remaining();
        self.start_unattended();
        let is_wanted = self.is_progress_wanted();
        tokio::select! {
            biased;
            message = self.inbox.recv(), if !self.closed => self.receive(message),
            Some(command) = self.reports.recv() => self.report(command),
            reading = self.catch_ups.next() => self.catch_up_ended(reading),
            () = pause => {}
            () = tokio::time::sleep(alone.unwrap_or_default()), if alone.is_some() => {
                self.unload(UnloadReason::Idle);
            }
            () = self.progress.due(), if is_wanted => self.say_progress(),
        }
    }

    /// Takes everything that came meanwhile into the next round, clients first.
    fn take_what_is_there(&mut self) {
        while !self.closed
            && let Ok(message) = self.inbox.try_recv()
        {
            self.offer(message);
        }
        // While the journal is away no round empties the inbox; those who report wait in their channel.
        while self.owner.has_capacity()
            && let Ok(command) = self.reports.try_recv()
        {
            self.report(command);
        }
    }

    fn report(&mut self, command: Command) {
        if self.owner.offer(Envelope::report(command)).is_err() {
            // Nobody reports without having seen room.
            tracing::error!(thread = %self.id, "a report was lost");
        }
    }

    fn receive(&mut self, message: Option<TaskMessage>) {
        if let Some(message) = message {
            return self.offer(message);
        }
        // Every handle is gone: leave in good order.
        self.closed = true;
    }

    fn offer(&mut self, message: TaskMessage) {
        if self.owner.is_over() {
            return self.late.push(message);
        }
        self.idle_since = None;
        self.tokens += 1;
        let token = Token(self.tokens);
        let (envelope, caller) = match message {
            TaskMessage::Command {
                command,
                reply_to:
                    ReplyTo {
                        reply,
                        idempotency: keyed,
                    },
                after: then,
            } => {
                let envelope = Envelope::Command {
                    command,
                    token: Some(token),
                    key: keyed.map(Box::new),
                };
                (envelope, Caller::Command(reply, then))
            }
            TaskMessage::Subscribe { subscriber, change } => {
                self.change_for(change);
                let seen = subscriber.seen;
                let subscribe = Envelope::Subscribe { token, seen };
                (subscribe, Caller::Subscribe(subscriber))
            }
            TaskMessage::Unsubscribe {
                subscriber: listener,
                reply,
            } => {
                let _ = reply.send(self.remove_subscriber(&listener));
                return;
            }
            TaskMessage::CannotAnswer {
                subscriber: listener,
                request,
                reply,
            } => {
                let _ = reply.send(self.note_cannot_answer(request, listener));
                return;
            }
            TaskMessage::Inspect(look) => return self.inspections.push(look),
            TaskMessage::Unload => {
                self.closed = true;
                return;
            }
        };
        let stops = match &envelope {
            Envelope::Command {
                command: Command::Interrupt(it),
                key,
                ..
            } if !self.has_come(key.as_deref()) => Some(it.turn.clone()),
            _ => None,
        };
        self.callers.insert(token, caller);
        if self.owner.offer(envelope).is_err() {
            self.refuse(token, Refusal::Busy);
        } else if let Some(turn) = stops {
            self.cut_off(turn.as_ref());
        }
    }

    /// Whether an order came before under the same key: what it stopped was another turn by then.
    fn has_come(&self, keyed: Option<&IdempotentRequest>) -> bool {
        let thread = self.owner.thread();
        let now = self.shared.now();
        keyed.is_some_and(|it| thread.recall(&it.key, &it.asked, now).is_some())
    }

    fn refuse(&mut self, token: Token, refusal: Refusal) {
        match self.callers.remove(&token) {
            Some(Caller::Command(reply, _)) => reply(Err(refusal.into())),
            Some(Caller::Subscribe(subscriber)) => drop((subscriber.reply)(Err(refusal.into()))),
            None => {}
        }
    }

    fn show_snapshot(&self) {
        let settings = self.owner.thread().settings();
        let status = self.owner.settled().map(Thread::status);
        self.snapshot.send_if_modified(|it| {
            let is_set_otherwise = *it.settings != *settings;
            if is_set_otherwise {
                it.settings = Arc::new(settings.clone());
            }
            let is_other = status.is_some() && it.status != status;
            it.status = status.or(it.status);
            is_set_otherwise || is_other
        });
    }

    fn act(&mut self, outs: Vec<WriterAction>) {
        // Before anyone is answered: who then starts a turn has it told about the right folder.
        self.show_snapshot();
        // So that who hears that it is deleted does not find it in memory.
        if self.owner.settled().is_some_and(Thread::is_deleted) {
            self.inbox.close();
        }
        if self.owner.stored() > self.initial_head
            && let Some(starter) = self.starter.take()
        {
            let head = self.owner.stored();
            self.tokens += 1;
            let settled = SubscriptionStart {
                token: Token(self.tokens),
                cursor: CursorStatus::Good,
                after: head,
                head,
            };
            self.introduce(starter, settled);
            // It is answered before anyone hears of what it began.
            if !self.pending_subscribers.is_empty() {
                self.deferred = outs;
                return;
            }
        }
        for out in outs {
            match out {
                WriterAction::Reply(token, Err(refusal)) => self.refuse(token, refusal),
                WriterAction::Reply(token, Ok(outcome)) => {
                    if let Some(Caller::Command(reply, then)) = self.callers.remove(&token) {
                        if then == AfterCommand::Unload {
                            self.say_not_loaded();
                            self.unload(UnloadReason::Requested);
                        }
                        let thread = self.owner.thread();
                        reply(Ok(AppliedCommand { outcome, thread }));
                    }
                }
                WriterAction::Subscribed(settled) => self.subscribe(settled),
                WriterAction::Tell(told) => {
                    if let RecordBody::Event(event) = &told.record.body {
                        match &**event {
                            Event::TurnEnded(it) => self.end_with(it.turn.clone()),
                            Event::RequestResolved(it) => self.amend(&it.resolution),
                            _ => {}
                        }
                    }
                    self.tell(told);
                }
                WriterAction::Ask(request) => self.ask(request, None),
                // No tool of ours asks while it runs.
                WriterAction::Deliver(..) => {}
                WriterAction::Start(effect) => self.start(effect),
                WriterAction::Stop(effect) => {
                    if let Some(work) = self.work.remove(&effect) {
                        work.abort();
                    }
                }
                WriterAction::SaveBase(base) => {
                    let (journal, id) = (self.journal.clone(), self.id);
                    tokio::spawn(async move {
                        if let Err(error) = journal.save_base(id, *base).await {
                            tracing::warn!(thread = %id, %error, "a snapshot was not kept");
                        }
                    });
                }
            }
        }
        self.start_catch_ups();
    }
}

impl Drop for Task {
    /// Whatever ends the task, nothing it started goes on, and nobody waits for what will not come.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.notice(ThreadClosedNotification { thread_id: self.id }.into());
        }
        for work in self.work.values().chain(self.unattended.values()) {
            work.abort();
        }
        let running = self.owner.thread().turn().map(|turn| turn.id.clone());
        if let Some(turn) = running
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.end_with(turn);
        }
        self.subscriptions.clear();
        self.catch_ups.let_go();
    }
}
