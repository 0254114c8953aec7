//! The task of one live thread: the only writer of its journal.

mod audience;
mod effects;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{AppendError, Journal};
use raddle_core::{
    Command, Cursor, Effect, Ended, Envelope, Out, Outcome, Owner, Refusal, Seq, Step, ThreadId,
    Token,
};
use raddle_protocol::ThreadClosedNotification;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::Listener;
use crate::threads::{AgentError, Shared, Subscribed};

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
        reply: Reply<Outcome>,
    },
    Subscribe {
        seen: Option<Seq>,
        subscriber: Subscriber,
    },
    Unsubscribe {
        listener: Arc<dyn Listener>,
    },
    /// A look at the thread as it is stored.
    Look(Look),
    /// The thread is to be left in good order.
    Leave,
}

/// Someone's look at the thread.
pub(crate) type Look = Box<dyn FnOnce(&raddle_core::Thread) + Send>;

/// Answers a caller, on the spot: whoever is told of what the caller did is told after this.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, AgentError>) + Send>;

/// Someone who is about to hear of the thread.
pub(crate) struct Subscriber {
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) reply: Reply<Subscribed>,
}

enum Caller {
    Order(Reply<Outcome>),
    Subscribe(Subscriber),
}

/// Whether the thread is to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// As soon as there is room for the order.
    Wanted,
    Ordered,
}

pub(crate) struct Task {
    id: ThreadId,
    shared: Arc<Shared>,
    journal: Arc<dyn Journal>,
    owner: Owner,
    inbox: mpsc::Receiver<Message>,
    reports: mpsc::Receiver<Command>,
    /// For those who report.
    reporter: mpsc::Sender<Command>,
    callers: BTreeMap<Token, Caller>,
    /// Who began the thread, until its beginning is stored.
    starter: Option<Subscriber>,
    listeners: Vec<Arc<dyn Listener>>,
    looks: Vec<Look>,
    work: BTreeMap<Effect, AbortHandle>,
    tokens: u64,
    /// Since when the journal takes nothing.
    away_since: Option<Instant>,
    /// Why the last append failed, if it did.
    failed: Option<AppendError>,
    /// Whether no handle is left.
    forsaken: bool,
    leaving: Leaving,
}

impl Task {
    pub(crate) fn new(
        id: ThreadId,
        shared: Arc<Shared>,
        journal: Arc<dyn Journal>,
        owner: Owner,
        inbox: mpsc::Receiver<Message>,
        starter: Option<Subscriber>,
    ) -> Self {
        let (reporter, reports) = mpsc::channel(REPORTS);
        Self {
            id,
            shared,
            journal,
            owner,
            inbox,
            reports,
            reporter,
            callers: BTreeMap::new(),
            starter,
            listeners: Vec::new(),
            looks: Vec::new(),
            work: BTreeMap::new(),
            tokens: 0,
            away_since: None,
            failed: None,
            forsaken: false,
            leaving: Leaving::No,
        }
    }

    /// Runs until someone else has the thread, or it is left.
    pub(crate) async fn run(mut self) -> Ended {
        loop {
            self.take_what_is_there();
            let now = self.shared.now();
            match self.owner.step(now) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    let journal = self.journal.clone();
                    let append = journal.append(self.id, after, &records, class);
                    let result = self.during(append).await;
                    if let Err(error) = &result {
                        tracing::warn!(thread = %self.id, %error, "append failed");
                    }
                    self.failed = result.as_ref().err().cloned();
                    let outs = self.owner.appended(result);
                    self.act(outs);
                    match self.failed {
                        None => self.away_since = None,
                        Some(AppendError::Unavailable(_)) => self.is_away().await,
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
                            self.act(outs);
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
                Step::Do(outs) => self.act(outs),
                Step::Wait(until) => {
                    for look in self.looks.drain(..) {
                        look(self.owner.thread());
                    }
                    self.wait(until.map(|at| at.since(now))).await;
                }
                Step::Ended(ended) => {
                    if let Some(starter) = self.starter.take() {
                        (starter.reply)(Err(match &ended {
                            Ended::NotStored(_) if self.away_since.is_some() => {
                                AgentError::Unavailable
                            }
                            Ended::NotStored(why) => Refusal::NotStored(why.clone()).into(),
                            _ => AgentError::Ended,
                        }));
                    }
                    self.say_why(&ended);
                    return ended;
                }
            }
        }
    }

    /// Waits for the journal, and meanwhile takes what comes in: an interrupt must not wait behind a
    /// slow disk.
    async fn during<T>(&mut self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        loop {
            tokio::select! {
                biased;
                done = &mut what => return done,
                message = self.inbox.recv(), if !self.forsaken => self.came(message),
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
        tokio::select! {
            biased;
            message = self.inbox.recv(), if !self.forsaken => self.came(message),
            Some(command) = self.reports.recv() => self.report(command),
            () = pause => {}
        }
    }

    /// Takes everything that came meanwhile into the next round, clients first.
    fn take_what_is_there(&mut self) {
        while let Ok(message) = self.inbox.try_recv() {
            self.offer(message);
        }
        self.order_to_leave();
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
        // Every handle is gone.
        self.forsaken = true;
        self.leave();
    }

    /// The thread is to be left in good order, once.
    fn leave(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Wanted;
        }
    }

    /// Orders what is wanted. While the inbox is full that has to wait, but it is not forgotten.
    fn order_to_leave(&mut self) {
        if self.leaving != Leaving::Wanted {
            return;
        }
        self.tokens += 1;
        let release = Envelope::order(Token(self.tokens), Command::Release);
        if self.owner.offer(release).is_ok() {
            self.leaving = Leaving::Ordered;
        }
    }

    fn offer(&mut self, message: Message) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let (envelope, caller) = match message {
            Message::Order { command, reply } => {
                (Envelope::order(token, command), Caller::Order(reply))
            }
            Message::Subscribe { seen, subscriber } => (
                Envelope::Subscribe { token, seen },
                Caller::Subscribe(subscriber),
            ),
            Message::Unsubscribe { listener } => {
                self.listeners.retain(|it| !Arc::ptr_eq(it, &listener));
                return;
            }
            Message::Look(look) => return self.looks.push(look),
            Message::Leave => return self.leave(),
        };
        let stops = match &envelope {
            Envelope::Command {
                command: Command::Interrupt(it),
                ..
            } => Some(it.turn.clone()),
            _ => None,
        };
        self.callers.insert(token, caller);
        if self.owner.offer(envelope).is_err() {
            self.refuse(token, Refusal::Busy);
        } else if let Some(turn) = stops {
            self.cut_off(turn.as_ref());
        }
    }

    fn refuse(&mut self, token: Token, refusal: Refusal) {
        match self.callers.remove(&token) {
            Some(Caller::Order(reply)) => reply(Err(refusal.into())),
            Some(Caller::Subscribe(subscriber)) => (subscriber.reply)(Err(refusal.into())),
            None => {}
        }
    }

    fn act(&mut self, outs: Vec<Out>) {
        if self.owner.stored() > Seq::ZERO
            && let Some(starter) = self.starter.take()
        {
            let head = self.owner.stored();
            self.introduce(starter, Cursor::Good, head, head);
        }
        for out in outs {
            match out {
                Out::Reply(token, Err(refusal)) => self.refuse(token, refusal),
                Out::Reply(token, Ok(outcome)) => {
                    if let Some(Caller::Order(reply)) = self.callers.remove(&token) {
                        reply(Ok(outcome));
                    }
                }
                Out::Subscribed(settled) => self.subscribe(settled),
                Out::Tell(told) => self.tell(told),
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
    }
}

impl Drop for Task {
    /// Whatever ends the task, nothing it started goes on, and nobody waits for what will not come.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.notice(ThreadClosedNotification { thread_id: self.id }.into());
        }
        for work in self.work.values() {
            work.abort();
        }
    }
}
