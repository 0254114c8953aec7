//! The task of one live thread: the only writer of its journal.

mod budgets;
mod effects;
mod left_questions;
mod notify;
mod progress;
mod running_work;
mod storage_full;
mod subscribe;
mod subscribers;
mod tool_questions;
mod trust;
mod turn_log;
mod unattended;
mod unload;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use raddle_core::ports::{AppendError, Journal};
use raddle_core::{
    ChangeSettings, Command, CommandOutcome, CursorStatus, Envelope, Event, IdempotentRequest,
    RecordBody, Refusal, RequestNumber, Seq, Step, SubscriptionStart, Thread, ThreadId,
    ThreadWriter, Token, TurnId, WriterAction, WriterEnd,
};
use raddle_protocol::{Notification, ThreadClosedNotification};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use self::left_questions::LeftQuestions;
use self::progress::Progress;
use self::running_work::RunningWork;
pub(crate) use self::subscribe::{NewSubscriber, UsageReport};
use self::subscribers::Subscribers;
use self::tool_questions::{QUESTIONS, ToolQuestion, ToolQuestions};
use self::trust::TrustQuestion;
use self::turn_log::TurnLog;
use self::unload::UnloadReason;
use crate::context::History;
use crate::hooks::NOTICES;
use crate::images::show_in_notification;
use crate::reply_to::CommandReply;
use crate::thread_blobs::ThreadBlobs;
use crate::threads::{Snapshot, ThreadRegistry};
use crate::{AgentError, AppliedCommand, ReplyTo, Subscriber};

/// Capacity of the report channel; work waits when it is full.
const REPORTS: usize = 64;

/// Delay before the next attempt after the journal was unavailable.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A message to a task.
pub(crate) enum TaskMessage {
    Command {
        command: Box<Command>,
        reply_to: ReplyTo,
        after: AfterCommand,
        /// Span of the caller, for the log.
        span: Span,
    },
    Subscribe {
        subscriber: NewSubscriber,
        /// Changes of settings, applied if the thread has no subscriber and nothing runs.
        change: Option<Box<ChangeSettings>>,
    },
    /// Replies whether it was subscribed.
    Unsubscribe {
        subscriber: Arc<dyn Subscriber>,
        reply: oneshot::Sender<bool>,
    },
    /// A subscriber cannot answer a request. Replies whether no other subscriber can either.
    CannotAnswer {
        subscriber: Arc<dyn Subscriber>,
        request: RequestNumber,
        reply: oneshot::Sender<bool>,
    },
    /// A notification for the subscribers that is not a record.
    Notice(Box<Notification>),
    /// Reads the thread as it is stored.
    Inspect(InspectFn),
    /// Unloads the thread gracefully.
    Unload,
}

/// The task's next step after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterCommand {
    KeepLoaded,
    /// Unload the thread, unless it is in use.
    UnloadIdle,
    /// Unload the thread: it is no longer needed in memory.
    Unload,
}

impl TaskMessage {
    /// Replies with an error.
    pub(crate) fn refuse(self, error: AgentError) {
        match self {
            Self::Command { reply_to, span, .. } => span.in_scope(|| (reply_to.reply)(Err(error))),
            Self::Subscribe { subscriber, .. } => drop((subscriber.reply)(Err(error))),
            // Dropping the sender informs the caller.
            Self::Unsubscribe { .. }
            | Self::CannotAnswer { .. }
            | Self::Notice(_)
            | Self::Inspect(_)
            | Self::Unload => {}
        }
    }
}

/// A function that reads the thread.
pub(crate) type InspectFn = Box<dyn FnOnce(&Thread) + Send>;

enum Caller {
    Command {
        reply: CommandReply,
        after: AfterCommand,
        /// Id of the turn that the command starts, if it starts one.
        turn: Option<TurnId>,
        /// Span of the caller on this thread.
        span: Span,
    },
    Subscribe(NewSubscriber),
}

/// The end of a task.
pub(crate) struct TaskEnd {
    pub(crate) ended: WriterEnd,
    /// Sequence number of the last stored record.
    pub(crate) head: Seq,
    /// Messages that arrived too late, for the next task of the thread.
    pub(crate) late: Vec<TaskMessage>,
}

/// The stores of a thread's records and images.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: ThreadBlobs,
}

pub(crate) struct Task {
    id: ThreadId,
    shared: Arc<ThreadRegistry>,
    journal: Arc<dyn Journal>,
    blobs: ThreadBlobs,
    writer: ThreadWriter,
    inbox: mpsc::Receiver<TaskMessage>,
    reports: mpsc::Receiver<Command>,
    /// Sender for reports of work.
    reporter: mpsc::Sender<Command>,
    /// Notifications of work: of the hooks that it runs, and of its progress.
    notices: mpsc::Receiver<Box<Notification>>,
    notifier: mpsc::Sender<Box<Notification>>,
    /// Questions of running tools.
    questions: mpsc::Receiver<ToolQuestion>,
    questioner: mpsc::Sender<ToolQuestion>,
    tool_questions: ToolQuestions,
    left_questions: LeftQuestions,
    trust: TrustQuestion,
    /// How often hooks continued the newest turn.
    continuations: (Option<TurnId>, Arc<AtomicU32>),
    callers: BTreeMap<Token, Caller>,
    /// Head of the journal before the task started.
    initial_head: Seq,
    subscribers: Subscribers,
    progress: Progress,
    /// Timers of requests without a subscriber that could answer them.
    unattended: BTreeMap<RequestNumber, AbortHandle>,
    inspections: Vec<InspectFn>,
    /// Messages that arrived after the writer had ended.
    late: Vec<TaskMessage>,
    /// Snapshot that handles read without a message.
    snapshot: watch::Sender<Snapshot>,
    work: RunningWork,
    history: Arc<History>,
    turn_log: TurnLog,
    tokens: u64,
    /// Start of the journal's current outage.
    unavailable_since: Option<Instant>,
    /// Error of the last append, if it failed.
    failed: Option<AppendError>,
    /// Whether the inbox is closed: all handles are dropped, or the thread is being unloaded.
    closed: bool,
    /// Whether the writer was asked to release the thread.
    released: bool,
    /// Set when the thread is unloaded because it need not be in memory.
    unloading: Option<UnloadReason>,
    /// Start of the time without subscribers and activity.
    idle_since: Option<Instant>,
}

impl Task {
    pub(crate) fn new(
        id: ThreadId,
        shared: Arc<ThreadRegistry>,
        stores: Stores,
        writer: ThreadWriter,
        inbox: mpsc::Receiver<TaskMessage>,
        snapshot: watch::Sender<Snapshot>,
        starter: Option<NewSubscriber>,
    ) -> Self {
        let (reporter, reports) = mpsc::channel(REPORTS);
        let (notifier, notices) = mpsc::channel(NOTICES);
        let (questioner, questions) = mpsc::channel(QUESTIONS);
        let initial_head = writer.stored();
        let budget = shared.history_budget.clone();
        let history = match initial_head {
            Seq::ZERO => History::of_new(budget),
            _ => History::new(budget),
        };
        Self {
            subscribers: Subscribers::new(id, stores.clone(), starter),
            id,
            shared,
            journal: stores.journal,
            blobs: stores.blobs,
            writer,
            inbox,
            reports,
            reporter,
            notices,
            notifier,
            questions,
            questioner,
            tool_questions: ToolQuestions::default(),
            left_questions: LeftQuestions::default(),
            trust: TrustQuestion::default(),
            continuations: (None, Arc::default()),
            callers: BTreeMap::new(),
            initial_head,
            progress: Progress::default(),
            unattended: BTreeMap::new(),
            inspections: Vec::new(),
            late: Vec::new(),
            snapshot,
            work: RunningWork::default(),
            history: Arc::new(history),
            turn_log: TurnLog::default(),
            tokens: 0,
            unavailable_since: None,
            failed: None,
            closed: false,
            released: false,
            unloading: None,
            idle_since: None,
        }
    }

    /// Runs until another process owns the thread, or it is unloaded.
    pub(crate) async fn run(mut self) -> TaskEnd {
        self.turn_log.adopt(self.writer.thread());
        self.adopt_trust_question();
        self.left_questions = LeftQuestions::of(self.writer.thread());
        loop {
            self.add_pending_subscribers().await;
            self.finish_catch_ups().await;
            self.update_progress();
            self.drain_inbox();
            self.release();
            let now = self.shared.now();
            match self.writer.step(now) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let journal = self.journal.clone();
                    let append = journal.append(self.id, after, &records, class);
                    // Not at `info`: appends are as frequent as deltas.
                    let span = tracing::debug_span!(
                        target: crate::SPANS,
                        "append",
                        records = records.len(),
                        ?class
                    );
                    let shared = self.shared.clone();
                    let appending = shared.counters.append();
                    let result = self.during(append.instrument(span)).await;
                    appending.ended(class, &result);
                    if let Err(error) = &result {
                        tracing::warn!(thread = %self.id, %error, "append failed");
                    }
                    self.failed = result.as_ref().err().cloned();
                    if self.failed.is_none() {
                        let lineage = self.writer.thread().lineage();
                        self.history.follow(lineage, after, &records);
                    }
                    let actions = self.writer.appended(result);
                    self.show_and_act(actions).await;
                    // While text streams the thread may never be idle.
                    if self.failed.is_none() {
                        self.run_inspections();
                    }
                    match self.failed {
                        None => self.unavailable_since = None,
                        Some(AppendError::Unavailable(_)) => self.wait_while_unavailable().await,
                        Some(AppendError::Full(_)) if self.writer.fails().is_some() => {
                            self.wait_for_space().await;
                        }
                        // Reading the head shows whether the records are stored.
                        Some(AppendError::Unknown(_)) => {
                            self.unavailable_since.get_or_insert_with(Instant::now);
                        }
                        Some(_) => {}
                    }
                }
                Step::ReadHead => {
                    let journal = self.journal.clone();
                    let head = self.during(journal.head(self.id)).await;
                    let stored = self.writer.stored();
                    match head {
                        Ok(head) => {
                            let actions = self.writer.head_is(head);
                            self.show_and_act(actions).await;
                        }
                        Err(error) => {
                            tracing::warn!(thread = %self.id, %error, "cannot read the head of the journal");
                        }
                    }
                    if self.writer.stored() > stored {
                        self.unavailable_since = None;
                    } else {
                        self.wait_while_unavailable().await;
                    }
                }
                Step::Do(actions) => self.show_and_act(actions).await,
                Step::Wait(until) => {
                    self.run_inspections();
                    self.wait(until.map(|at| at.since(now))).await;
                }
                Step::Ended(ended) => {
                    if self.fail_turn(&ended).await {
                        continue;
                    }
                    if let Some(starter) = self.subscribers.take_starter() {
                        drop((starter.reply)(Err(match &ended {
                            WriterEnd::NotStored(_) if self.unavailable_since.is_some() => {
                                AgentError::Unavailable
                            }
                            WriterEnd::NotStored(why) => Refusal::NotStored(why.clone()).into(),
                            _ => AgentError::Ended,
                        })));
                    }
                    // State that was not stored is not shown: later readers read the journal.
                    match self.writer.stored_thread() {
                        Some(_) => self.run_inspections(),
                        None => self.inspections.clear(),
                    }
                    self.notify_end(&ended);
                    return self.finish(ended).await;
                }
            }
        }
    }

    /// Loads the images that the notifications name, then executes the actions.
    async fn show_and_act(&mut self, mut actions: Vec<WriterAction>) {
        for action in &mut actions {
            if let WriterAction::Announce(announcement) = action {
                for notification in &mut announcement.notifications {
                    let blobs = self.blobs.clone();
                    self.during(show_in_notification(&blobs, notification))
                        .await;
                }
            }
        }
        self.act(actions);
    }

    fn run_inspections(&mut self) {
        for inspect in self.inspections.drain(..) {
            inspect(self.writer.thread());
        }
    }

    /// Waits for a future, and accepts messages while it waits: an interrupt must not wait for a
    /// slow disk.
    async fn during<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            let is_wanted = self.is_progress_wanted();
            tokio::select! {
                biased;
                done = &mut future => return done,
                message = self.inbox.recv(), if !self.closed => self.receive(message),
                () = self.progress.due(), if is_wanted => self.send_progress(),
            }
        }
    }

    /// Pauses before the journal is tried again. Gives up the thread if the outage lasts too long.
    async fn wait_while_unavailable(&mut self) {
        let since = *self.unavailable_since.get_or_insert_with(Instant::now);
        let timeouts = self.journal.timeouts();
        // No other client knows a thread that is being started.
        let max_outage = match self.subscribers.has_starter() {
            true => timeouts.start,
            false => timeouts.outage,
        };
        if since.elapsed() < max_outage {
            return self.during(tokio::time::sleep(RETRY_DELAY)).await;
        }
        let actions = self
            .writer
            .give_up("it was not available for too long".to_owned());
        self.act(actions);
    }

    /// Waits for a message, or until the time is over.
    async fn wait(&mut self, ms: Option<i64>) {
        let pause = async {
            match ms.map(u64::try_from) {
                Some(Ok(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        };
        let idle_timeout = self.idle_remaining();
        self.start_unattended();
        let is_wanted = self.is_progress_wanted();
        tokio::select! {
            biased;
            message = self.inbox.recv(), if !self.closed => self.receive(message),
            Some(notice) = self.notices.recv() => self.notice_of_work(*notice),
            Some(command) = self.reports.recv() => self.report(command),
            Some(question) = self.questions.recv() => self.offer_question(question),
            request = self.tool_questions.abandoned() => self.withdraw_question(request),
            joined = self.subscribers.next_catch_up() => self.subscribers.catch_up_ended(joined),
            () = pause => {}
            () = tokio::time::sleep(idle_timeout.unwrap_or_default()), if idle_timeout.is_some() => {
                self.unload(UnloadReason::Idle);
            }
            () = self.progress.due(), if is_wanted => self.send_progress(),
        }
    }

    /// Offers all pending messages to the next round, those of clients first.
    fn drain_inbox(&mut self) {
        while !self.closed
            && let Ok(message) = self.inbox.try_recv()
        {
            self.offer(message);
        }
        while let Ok(question) = self.questions.try_recv() {
            self.offer_question(question);
        }
        // During an outage of the journal no round empties the inbox; reports then wait in their
        // channel.
        while self.writer.has_capacity()
            && let Ok(command) = self.reports.try_recv()
        {
            self.report(command);
        }
    }

    fn report(&mut self, command: Command) {
        // Work sends its notifications first.
        while let Ok(notice) = self.notices.try_recv() {
            self.notice_of_work(*notice);
        }
        if self.writer.offer(Envelope::report(command)).is_err() {
            // Reports are taken only when there is capacity.
            tracing::error!(thread = %self.id, "a report was lost");
        }
    }

    fn receive(&mut self, message: Option<TaskMessage>) {
        if let Some(message) = message {
            return self.offer(message);
        }
        // Every handle is dropped: unload gracefully.
        self.closed = true;
    }

    fn offer(&mut self, message: TaskMessage) {
        if self.writer.is_over() {
            return self.late.push(message);
        }
        self.idle_since = None;
        self.tokens += 1;
        let token = Token(self.tokens);
        let (envelope, caller) = match message {
            TaskMessage::Command {
                command,
                reply_to: ReplyTo { reply, idempotency },
                after,
                span,
            } => {
                let turn = new_turn(&command).cloned();
                let span = self.span_of(span);
                let envelope = Envelope::Command {
                    command: *command,
                    token: Some(token),
                    key: idempotency.map(Box::new),
                };
                let caller = Caller::Command {
                    reply,
                    after,
                    turn,
                    span,
                };
                (envelope, caller)
            }
            // As in the reference: its queue does not start turns.
            TaskMessage::Subscribe { subscriber, .. }
                if subscriber.is_returning && self.writer.thread().is_archived() =>
            {
                return drop((subscriber.reply)(Err(AgentError::Archived)));
            }
            TaskMessage::Subscribe { subscriber, change } => {
                self.change_for(change);
                let cursor = subscriber.cursor;
                let subscribe = Envelope::Subscribe { token, cursor };
                (subscribe, Caller::Subscribe(subscriber))
            }
            TaskMessage::Unsubscribe { subscriber, reply } => {
                let _ = reply.send(self.subscribers.remove(&subscriber));
                return;
            }
            TaskMessage::CannotAnswer {
                subscriber,
                request,
                reply,
            } => {
                let _ = reply.send(self.note_cannot_answer(request, subscriber));
                return;
            }
            TaskMessage::Notice(notice) => return self.notice(*notice),
            TaskMessage::Inspect(inspect) => return self.inspections.push(inspect),
            TaskMessage::Unload => {
                self.closed = true;
                return;
            }
        };
        let interrupted_turn = match &envelope {
            Envelope::Command {
                command: Command::Interrupt(it),
                key,
                ..
            } if !self.is_repeated(key.as_deref()) => Some(it.turn.clone()),
            _ => None,
        };
        self.callers.insert(token, caller);
        if self.writer.offer(envelope).is_err() {
            self.refuse(token, Refusal::Busy);
        } else if let Some(turn) = interrupted_turn {
            self.cancel_turn_work(turn.as_ref());
        }
    }

    /// Returns the span of a caller on this thread. If the filter of the log excludes it, the
    /// caller's own span still names the connection.
    fn span_of(&self, caller: Span) -> Span {
        let span =
            tracing::info_span!(target: crate::SPANS, parent: &caller, "thread", id = %self.id);
        if span.is_disabled() { caller } else { span }
    }

    /// Whether a command with the same key was executed before. The turn that it interrupted was
    /// another one.
    fn is_repeated(&self, request: Option<&IdempotentRequest>) -> bool {
        let thread = self.writer.thread();
        let now = self.shared.now();
        request.is_some_and(|it| thread.recall(&it.key, &it.request_hash, now).is_some())
    }

    fn refuse(&mut self, token: Token, refusal: Refusal) {
        match self.callers.remove(&token) {
            Some(Caller::Command { reply, span, .. }) => {
                span.in_scope(|| reply(Err(refusal.into())));
            }
            Some(Caller::Subscribe(subscriber)) => drop((subscriber.reply)(Err(refusal.into()))),
            None => self.tool_questions.refused(token),
        }
    }

    fn publish_snapshot(&self) {
        let settings = self.writer.thread().settings();
        let status = self.writer.stored_thread().map(Thread::status);
        self.snapshot.send_if_modified(|it| {
            let settings_changed = *it.settings != *settings;
            if settings_changed {
                it.settings = Arc::new(settings.clone());
            }
            let status_changed = status.is_some() && it.status != status;
            it.status = status.or(it.status);
            settings_changed || status_changed
        });
    }

    fn act(&mut self, actions: Vec<WriterAction>) {
        // Before any reply: a caller that then starts a turn must get a brief about the right
        // folder.
        self.publish_snapshot();
        // So that a client that is notified of the deletion does not find the thread in memory.
        if self.writer.stored_thread().is_some_and(Thread::is_deleted) {
            self.inbox.close();
        }
        if self.writer.stored() > self.initial_head
            && let Some(starter) = self.subscribers.take_starter()
        {
            let head = self.writer.stored();
            self.tokens += 1;
            let start = SubscriptionStart {
                token: Token(self.tokens),
                cursor: CursorStatus::Good,
                after: head,
                head,
            };
            self.reply_and_add(starter, start);
            // The creator receives its reply before any notification.
            if self.subscribers.has_pending() {
                return self.subscribers.defer(actions);
            }
        }
        for action in actions {
            match action {
                WriterAction::Reply(token, Err(refusal)) => self.refuse(token, refusal),
                WriterAction::Reply(token, Ok(outcome)) => {
                    let caller = self.callers.remove(&token);
                    if let Some(Caller::Command {
                        reply,
                        after,
                        turn,
                        span,
                    }) = caller
                    {
                        // The outcome of a command with an idempotency key does not say whether
                        // its turn starts.
                        if let Some(turn) = turn
                            && !matches!(outcome, CommandOutcome::Joined { .. })
                        {
                            self.turn_log.add_starter(turn, &span);
                        }
                        match after {
                            AfterCommand::Unload => {
                                self.notify_not_loaded();
                                self.unload(UnloadReason::Requested);
                            }
                            AfterCommand::UnloadIdle if self.idle_remaining().is_some() => {
                                self.unload(UnloadReason::Idle);
                            }
                            AfterCommand::UnloadIdle | AfterCommand::KeepLoaded => {}
                        }
                        let thread = self.writer.thread();
                        span.in_scope(|| reply(Ok(AppliedCommand { outcome, thread })));
                    }
                }
                WriterAction::Subscribed(start) => self.subscribe(start),
                WriterAction::Announce(announcement) => {
                    if let RecordBody::Event(event) = &announcement.record.body {
                        match &**event {
                            Event::TurnEnded(it) => self.end_turn_tools(it.turn.clone()),
                            Event::RequestOpened(it) => self.tool_questions.opened(it),
                            Event::RequestResolved(it) => self.amend(&it.resolution),
                            _ => {}
                        }
                        self.follow_trust(event);
                        self.follow_left_questions(event);
                        let (thread, at) = (self.writer.thread(), announcement.record.at);
                        self.turn_log.follow(thread, event, at);
                    }
                    self.notify(announcement);
                }
                WriterAction::Ask(request) => self.ask(request),
                WriterAction::Deliver(_, request, resolution) => {
                    self.tool_questions.resolved(request, resolution);
                }
                WriterAction::Start(effect) => self.start(effect),
                WriterAction::Stop(effect) => self.work.abort(&effect),
                WriterAction::SaveBase(base) => {
                    let (journal, id) = (self.journal.clone(), self.id);
                    tokio::spawn(async move {
                        if let Err(error) = journal.save_base(id, *base).await {
                            tracing::warn!(thread = %id, %error, "a base was not stored");
                        }
                    });
                }
            }
        }
        self.turn_log.clear_starters();
        if let Some(stored) = self.writer.stored_thread() {
            let switched = self.subscribers.start_catch_ups(stored);
            self.shared.counters.fell_behind.add(switched);
        }
    }
}

/// Returns the id of the turn that a command starts. Its input may join a running turn instead.
fn new_turn(command: &Command) -> Option<&TurnId> {
    match command {
        Command::StartTurn(it) => Some(&it.turn),
        Command::StartReview(it) => Some(&it.turn),
        Command::StartQueued(it) => Some(&it.turn),
        Command::RunShell(it) => Some(&it.turn),
        _ => None,
    }
}

impl Drop for Task {
    /// Stops the work of the task and answers its callers, even after a panic.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.notice(ThreadClosedNotification { thread_id: self.id }.into());
        }
        self.work.abort_all();
        for timer in self.unattended.values() {
            timer.abort();
        }
        let running = self.writer.thread().turn().map(|turn| turn.id.clone());
        if let Some(turn) = running
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.end_turn_tools(turn);
        }
        self.subscribers.detach();
    }
}
