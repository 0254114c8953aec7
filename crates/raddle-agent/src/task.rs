//! The task of one live thread: the only writer of its journal.

mod absent;
mod audience;
mod behind;
mod effects;
mod full;
mod join;
mod leave;
mod progress;

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{AppendError, Blobs, Journal};
use raddle_core::{
    Body, ChangeSettings, Command, Cursor, Effect, Ended, Envelope, Event, ItemId, Keyed, Out,
    Owner, Refusal, RequestNumber, Seq, Settled, Step, Thread, ThreadId, Token,
};
use raddle_protocol::ThreadClosedNotification;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::behind::{Readers, Seat};
use self::join::Joining;
pub(crate) use self::join::{Subscriber, Usage};
use self::leave::Leaving;
use self::progress::Progress;
use crate::context::History;
use crate::images::show_told;
use crate::threads::{AgentError, Done, Ordered, Shared, Snapshot};
use crate::{Listener, Owed};

/// How many reports of work may wait; whoever reports waits for room.
const REPORTS: usize = 64;

/// How long the journal is left alone after it was not available.
const AWAY: Duration = Duration::from_millis(100);

/// How long the journal may be away before its thread is left; whoever waits is told, and whoever comes
/// later finds what is stored.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The same for who begins a thread: nobody else knows of it yet.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// What comes into a task.
pub(crate) enum Message {
    Order {
        command: Command,
        owed: Owed,
        then: Then,
    },
    Subscribe {
        subscriber: Subscriber,
        /// What changes with it, if nobody hears of the thread and nothing runs in it.
        change: Option<Box<ChangeSettings>>,
    },
    /// Answered with whether it had listened.
    Unsubscribe {
        listener: Arc<dyn Listener>,
        reply: oneshot::Sender<bool>,
    },
    /// A listener cannot answer a request. Answered with whether nobody else could.
    Cannot {
        listener: Arc<dyn Listener>,
        request: RequestNumber,
        reply: oneshot::Sender<bool>,
    },
    /// A look at the thread as it is stored.
    Look(Look),
    /// The thread is to be left in good order.
    Leave,
}

/// What becomes of the task once an order is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Stay,
    /// The thread is left: it need no longer be in memory.
    Leave,
}

impl Message {
    /// Whoever sent it is told why nothing came of it.
    pub(crate) fn refuse(self, error: AgentError) {
        match self {
            Self::Order { owed, .. } => (owed.reply)(Err(error)),
            Self::Subscribe { subscriber, .. } => drop((subscriber.reply)(Err(error))),
            // Whoever waits for these sees that nobody will answer.
            Self::Unsubscribe { .. } | Self::Cannot { .. } | Self::Look(_) | Self::Leave => {}
        }
    }
}

/// Someone's look at the thread.
pub(crate) type Look = Box<dyn FnOnce(&Thread) + Send>;

/// Answers a caller, on the spot: whoever is told of what the caller did is told after this.
pub(crate) type OrderReply = Box<dyn FnOnce(Ordered<'_>) + Send>;

enum Caller {
    Order(OrderReply, Then),
    Subscribe(Subscriber),
}

/// How a task came to its end.
pub(crate) struct Over {
    pub(crate) ended: Ended,
    /// The newest record that it stored.
    pub(crate) head: Seq,
    /// What came too late for it, and is for whoever opens the thread next.
    pub(crate) late: Vec<Message>,
}

/// Where a thread's records and images are.
pub(crate) struct Stores {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: Arc<dyn Blobs>,
}

pub(crate) struct Task {
    id: ThreadId,
    shared: Arc<Shared>,
    journal: Arc<dyn Journal>,
    blobs: Arc<dyn Blobs>,
    owner: Owner,
    inbox: mpsc::Receiver<Message>,
    reports: mpsc::Receiver<Command>,
    /// For those who report.
    reporter: mpsc::Sender<Command>,
    callers: BTreeMap<Token, Caller>,
    /// Who began the thread, until its beginning is stored.
    starter: Option<Subscriber>,
    /// What was stored before it began.
    found: Seq,
    /// Those who hear of the thread.
    seats: Vec<Seat>,
    readers: Readers,
    progress: Progress,
    /// Those who cannot answer a request.
    unable: Vec<(RequestNumber, Arc<dyn Listener>)>,
    /// Requests that nobody is there to answer, each until its time is over.
    absent: BTreeMap<RequestNumber, AbortHandle>,
    /// Those who are being answered and hear nothing yet.
    joining: VecDeque<Joining>,
    /// What goes out once they are answered.
    held: Vec<Out>,
    looks: Vec<Look>,
    /// What came when the owner was at its end already.
    late: Vec<Message>,
    /// Where handles read what they need not ask for.
    snapshot: watch::Sender<Snapshot>,
    work: BTreeMap<Effect, AbortHandle>,
    /// Tools that run, each until it is told to stop: letting go tells it.
    stops: BTreeMap<ItemId, watch::Sender<()>>,
    history: Arc<History>,
    tokens: u64,
    /// Since when the journal takes nothing.
    away_since: Option<Instant>,
    /// Why the last append failed, if it did.
    failed: Option<AppendError>,
    /// Whether nothing more is taken in: no handle is left, or the thread is.
    forsaken: bool,
    /// Whether it was said so to the owner.
    released: bool,
    /// Set when the thread is left because it need not be in memory.
    leaving: Option<Leaving>,
    /// Since when nobody listens and nothing happens.
    alone_since: Option<Instant>,
    /// Whether anyone was told that the thread is in memory.
    is_known: bool,
}

impl Task {
    pub(crate) fn new(
        id: ThreadId,
        shared: Arc<Shared>,
        stores: Stores,
        owner: Owner,
        inbox: mpsc::Receiver<Message>,
        snapshot: watch::Sender<Snapshot>,
        starter: Option<Subscriber>,
    ) -> Self {
        let (reporter, reports) = mpsc::channel(REPORTS);
        let found = owner.stored();
        let shelf = shared.shelf.clone();
        let history = match found {
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
            found,
            seats: Vec::new(),
            readers: Readers::default(),
            progress: Progress::default(),
            unable: Vec::new(),
            absent: BTreeMap::new(),
            joining: VecDeque::new(),
            held: Vec::new(),
            looks: Vec::new(),
            late: Vec::new(),
            snapshot,
            work: BTreeMap::new(),
            stops: BTreeMap::new(),
            history: Arc::new(history),
            tokens: 0,
            away_since: None,
            failed: None,
            forsaken: false,
            released: false,
            leaving: None,
            alone_since: None,
            is_known: false,
        }
    }

    /// Runs until someone else has the thread, or it is left.
    pub(crate) async fn run(mut self) -> Over {
        loop {
            self.let_in().await;
            self.let_catch_up().await;
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
                    let appending = shared.tally.append();
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
                        self.show_to_lookers();
                    }
                    match self.failed {
                        None => self.away_since = None,
                        Some(AppendError::Unavailable(_)) => self.is_away().await,
                        Some(AppendError::Full(_)) if self.owner.fails().is_some() => {
                            self.wait_for_room().await;
                        }
                        // The head tells whether it is there.
                        Some(AppendError::Unknown(_)) => {
                            self.away_since.get_or_insert_with(Instant::now);
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
                        self.away_since = None;
                    } else {
                        self.is_away().await;
                    }
                }
                Step::Do(outs) => self.show_and_act(outs).await,
                Step::Wait(until) => {
                    self.show_to_lookers();
                    self.wait(until.map(|at| at.since(now))).await;
                }
                Step::Ended(ended) => {
                    if self.fail_turn(&ended).await {
                        continue;
                    }
                    if let Some(starter) = self.starter.take() {
                        drop((starter.reply)(Err(match &ended {
                            Ended::NotStored(_) if self.away_since.is_some() => {
                                AgentError::Unavailable
                            }
                            Ended::NotStored(why) => Refusal::NotStored(why.clone()).into(),
                            _ => AgentError::Ended,
                        })));
                    }
                    // What was not stored is not shown: whoever looks then looks into the journal.
                    match self.owner.settled() {
                        Some(_) => self.show_to_lookers(),
                        None => self.looks.clear(),
                    }
                    self.say_why(&ended);
                    return self.over(ended).await;
                }
            }
        }
    }

    /// Acts once the images in what is told are there.
    async fn show_and_act(&mut self, mut outs: Vec<Out>) {
        for out in &mut outs {
            if let Out::Tell(told) = out {
                for notification in &mut told.notifications {
                    let blobs = self.blobs.clone();
                    self.during(show_told(&*blobs, notification)).await;
                }
            }
        }
        self.act(outs);
    }

    fn show_to_lookers(&mut self) {
        for look in self.looks.drain(..) {
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
                message = self.inbox.recv(), if !self.forsaken => self.came(message),
                () = self.progress.due(), if is_wanted => self.say_progress(),
            }
        }
    }

    /// Leaves the journal alone for a moment, and the thread if it took nothing for too long.
    async fn is_away(&mut self) {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        let patience = match self.starter {
            Some(_) => START_PATIENCE,
            None => PATIENCE,
        };
        if since.elapsed() < patience {
            return self.during(tokio::time::sleep(AWAY)).await;
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
        let alone = self.alone_for();
        self.look_for_someone();
        let is_wanted = self.is_progress_wanted();
        tokio::select! {
            biased;
            message = self.inbox.recv(), if !self.forsaken => self.came(message),
            Some(command) = self.reports.recv() => self.report(command),
            reading = self.readers.next() => self.came_back(reading),
            () = pause => {}
            () = tokio::time::sleep(alone.unwrap_or_default()), if alone.is_some() => {
                self.leave(Leaving::Idle);
            }
            () = self.progress.due(), if is_wanted => self.say_progress(),
        }
    }

    /// Takes everything that came meanwhile into the next round, clients first.
    fn take_what_is_there(&mut self) {
        while !self.forsaken
            && let Ok(message) = self.inbox.try_recv()
        {
            self.offer(message);
        }
        // While the journal is away no round empties the inbox; those who report wait in their channel.
        while self.owner.has_room()
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

    fn came(&mut self, message: Option<Message>) {
        if let Some(message) = message {
            return self.offer(message);
        }
        // Every handle is gone: leave in good order.
        self.forsaken = true;
    }

    fn offer(&mut self, message: Message) {
        if self.owner.is_over() {
            return self.late.push(message);
        }
        self.alone_since = None;
        self.tokens += 1;
        let token = Token(self.tokens);
        let (envelope, caller) = match message {
            Message::Order {
                command,
                owed: Owed { reply, keyed },
                then,
            } => {
                let envelope = Envelope::Command {
                    command,
                    token: Some(token),
                    key: keyed.map(Box::new),
                };
                (envelope, Caller::Order(reply, then))
            }
            Message::Subscribe { subscriber, change } => {
                self.change_for(change);
                let seen = subscriber.seen;
                let subscribe = Envelope::Subscribe { token, seen };
                (subscribe, Caller::Subscribe(subscriber))
            }
            Message::Unsubscribe { listener, reply } => {
                let _ = reply.send(self.unseat(&listener));
                return;
            }
            Message::Cannot {
                listener,
                request,
                reply,
            } => {
                let _ = reply.send(self.nobody_can(request, listener));
                return;
            }
            Message::Look(look) => return self.looks.push(look),
            Message::Leave => {
                self.forsaken = true;
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
    fn has_come(&self, keyed: Option<&Keyed>) -> bool {
        let thread = self.owner.thread();
        let now = self.shared.now();
        keyed.is_some_and(|it| thread.recall(&it.key, &it.asked, now).is_some())
    }

    fn refuse(&mut self, token: Token, refusal: Refusal) {
        match self.callers.remove(&token) {
            Some(Caller::Order(reply, _)) => reply(Err(refusal.into())),
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

    fn act(&mut self, outs: Vec<Out>) {
        // Before anyone is answered: who then starts a turn has it told about the right folder.
        self.show_snapshot();
        // So that who hears that it is deleted does not find it in memory.
        if self.owner.settled().is_some_and(Thread::is_deleted) {
            self.inbox.close();
        }
        if self.owner.stored() > self.found
            && let Some(starter) = self.starter.take()
        {
            let head = self.owner.stored();
            self.tokens += 1;
            let settled = Settled {
                token: Token(self.tokens),
                cursor: Cursor::Good,
                after: head,
                head,
            };
            self.introduce(starter, settled);
            // It is answered before anyone hears of what it began.
            if !self.joining.is_empty() {
                self.held = outs;
                return;
            }
        }
        for out in outs {
            match out {
                Out::Reply(token, Err(refusal)) => self.refuse(token, refusal),
                Out::Reply(token, Ok(outcome)) => {
                    if let Some(Caller::Order(reply, then)) = self.callers.remove(&token) {
                        if then == Then::Leave {
                            self.say_not_loaded();
                            self.leave(Leaving::Told);
                        }
                        let thread = self.owner.thread();
                        reply(Ok(Done { outcome, thread }));
                    }
                }
                Out::Subscribed(settled) => self.subscribe(settled),
                Out::Tell(told) => {
                    if let Body::Event(event) = &told.record.body {
                        match &**event {
                            Event::TurnEnded(it) => self.end_with(it.turn.clone()),
                            Event::RequestResolved(it) => self.amend(&it.resolution),
                            _ => {}
                        }
                    }
                    self.tell(told);
                }
                Out::Ask(request) => self.ask(request, None),
                // No tool of ours asks while it runs.
                Out::Deliver(..) => {}
                Out::Start(effect) => self.start(effect),
                Out::Stop(effect) => {
                    if let Some(work) = self.work.remove(&effect) {
                        work.abort();
                    }
                }
                Out::SaveBase(base) => {
                    let (journal, id) = (self.journal.clone(), self.id);
                    tokio::spawn(async move {
                        if let Err(error) = journal.save_base(id, *base).await {
                            tracing::warn!(thread = %id, %error, "a snapshot was not kept");
                        }
                    });
                }
            }
        }
        self.let_fall_behind();
    }
}

impl Drop for Task {
    /// Whatever ends the task, nothing it started goes on, and nobody waits for what will not come.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.notice(ThreadClosedNotification { thread_id: self.id }.into());
        }
        for work in self.work.values().chain(self.absent.values()) {
            work.abort();
        }
        let running = self.owner.thread().turn().map(|turn| turn.id.clone());
        if let Some(turn) = running
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.end_with(turn);
        }
        self.seats.clear();
        self.readers.let_go();
    }
}
