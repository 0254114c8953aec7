//! State machine of the one task that may write a thread, without I/O.
//!
//! Each round decides everything in the inbox and returns one append. Only when that is stored does
//! it answer the callers, notify the subscribers and start the pending work. The thread held here
//! is ahead of the journal by at most the append under way, and nothing else reads it before that
//! is stored.

mod batch;
mod idempotency;
mod inbox;
mod meter;

pub use idempotency::{IdempotentRequest, RenderResponse};
pub use inbox::{Envelope, Inbox, Token};
pub use meter::{Meter, MeteredUsage};

use std::collections::BTreeSet;

use raddle_protocol::Notification;

use crate::ports::AppendError;
use crate::{
    Base, Class, Command, CommandOutcome, CursorStatus, Effect, Epoch, Event, Failure, Forked,
    ItemId, Own, Record, RecordBody, Recovery, Refusal, RequestNumber, Resolution, Seq, Thread,
    ThreadStarted, Timestamp, TurnId,
};

use batch::Batch;
pub use batch::weight;

/// Number of record numbers that an owner reserves at a time.
fn reserve() -> u64 {
    crate::bugs::bound(10_000, 80)
}

/// Maximum number of events since the newest base. `BASE_BYTES_MAX` limits the bytes.
fn base_events_max() -> u64 {
    crate::bugs::bound(1000, 25)
}

const BASE_BYTES_MAX: u64 = 4 << 20;

/// Node that takes ownership of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterNode {
    /// Name of the node.
    pub name: String,
    /// Epoch that it was granted.
    pub epoch: Epoch,
    /// Recovery of a turn whose owner died, where the thread's settings leave it open.
    pub recovery: Recovery,
}

/// Records between a thread's newest base and its head when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Number of events among them.
    pub events: u64,
    /// Estimated bytes of records.
    pub bytes: u64,
}

impl Tail {
    /// Counts one more folded record.
    pub fn count(&mut self, record: &Record) {
        self.events += u64::from(matches!(record.body, RecordBody::Event(_)));
        self.bytes += batch::weight(&record.body);
    }
}

/// Next step of the task.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Append the records, then call [`ThreadWriter::appended`].
    Append {
        /// Head that the append must follow.
        after: Seq,
        /// Records to append, in order.
        records: Vec<Record>,
        /// Failure that they must survive.
        class: Class,
    },
    /// Read the head, then call [`ThreadWriter::head_is`].
    ReadHead,
    /// Nothing had to be stored; perform these actions.
    Do(Vec<WriterAction>),
    /// Nothing to do until a message arrives, or until then.
    Wait(Option<Timestamp>),
    /// The task has ended.
    Ended(WriterEnd),
}

/// Reason why a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEnd {
    /// Another owner writes now.
    OwnedElsewhere,
    /// The journal accepted nothing more.
    NotStored(String),
    /// The thread was deleted.
    Deleted,
    /// The owner gave up ownership cleanly.
    Released,
}

/// Actions to perform once something is stored.
#[derive(Debug, PartialEq)]
pub enum WriterAction {
    /// Answers a caller with the outcome.
    Reply(Token, Result<CommandOutcome, Refusal>),
    /// A caller subscribed; the journal has what it missed, and what follows is sent live.
    Subscribed(SubscriptionStart),
    /// Sends the subscribers an announcement.
    Announce(Announcement),
    /// Sends a request to the subscribers.
    Ask(RequestNumber),
    /// Delivers the answer to a running tool's request.
    Deliver(ItemId, RequestNumber, Resolution),
    /// Starts work that is pending.
    Start(Effect),
    /// Stops work whose result is no longer needed.
    Stop(Effect),
    /// Stores a snapshot of the thread.
    SaveBase(Box<Base>),
}

/// Position at which a new subscriber starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionStart {
    /// Token of the subscriber.
    pub token: Token,
    /// Whether its cursor is valid.
    pub cursor: CursorStatus,
    /// The subscriber needs the records after this one.
    pub after: Seq,
    /// Last record that it must read; later ones are sent live.
    pub head: Seq,
}

/// A record with its notifications.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Record that was stored.
    pub record: Record,
    /// Notifications in order; only the last carries the record's number.
    pub notifications: Vec<Notification>,
}

impl Announcement {
    /// Returns the request that the record opens, if any.
    fn opened_request(&self) -> Option<RequestNumber> {
        let RecordBody::Event(event) = &self.record.body else {
            return None;
        };
        match &**event {
            Event::RequestOpened(it) => Some(it.request),
            _ => None,
        }
    }
}

/// Maximum number of records that follow from one another without a command. More means that a rule
/// contradicts itself; the thread then ends, so that the server does not run out of memory.
const ADVANCES_MAX: usize = 100_000;

/// The only writer of a thread.
#[derive(Debug)]
pub struct ThreadWriter {
    thread: Thread,
    /// Head of the journal.
    stored: Seq,
    next: Seq,
    inbox: Inbox,
    batch: Option<Batch>,
    /// Whether the head must be read, because the outcome of the batch's append is unknown.
    unknown: bool,
    /// Whether an append of the batch may have been stored, or may still be.
    in_doubt: bool,
    /// Whether the barrier is known to be stored.
    barrier_stored: bool,
    running: BTreeSet<Effect>,
    /// Measures the usage of the running model call.
    meter: Option<Meter>,
    /// Callers that wait for a turn to end.
    waiters: Vec<(TurnId, Token)>,
    events_since_base: u64,
    bytes_since_base: u64,
    /// Failure with which the first append ends the open turn, until that is stored.
    fails: Option<Failure>,
    ended: Option<WriterEnd>,
}

impl ThreadWriter {
    /// Creates a new thread.
    pub fn start(start: ThreadStarted, node: WriterNode, now: Timestamp) -> Self {
        let mut owner = Self::new(Thread::new(), Seq::ZERO);
        let mut batch = Batch::new(Seq::ZERO);
        let start = Command::StartThread(Box::new(start));
        owner.command(&mut batch, start, now).ok();
        owner.take(&mut batch, node, None, None, now);
        owner.batch = Some(batch);
        owner
    }

    /// Takes ownership of a thread that was folded from a journal with this head.
    pub fn open(thread: Thread, head: Seq, node: WriterNode, now: Timestamp) -> Self {
        Self::new(thread, head).opened(node, None, None, now)
    }

    /// Takes ownership of a thread that was folded from a journal, and ends its open turn with this
    /// failure. The former owner could store nothing more of that turn, because the journal was
    /// full. So its end is the first append, and is retried while the journal stays full.
    pub fn open_to_fail(
        thread: Thread,
        node: WriterNode,
        failure: Failure,
        now: Timestamp,
    ) -> Self {
        let head = thread.head();
        Self::new(thread, head).opened(node, None, Some(failure), now)
    }

    /// Takes ownership again, from the stored state, after an append for which the journal had no
    /// space, and ends the open turn with this failure.
    pub fn fail_turn(
        &mut self,
        thread: Thread,
        node: WriterNode,
        failure: Failure,
        now: Timestamp,
        tail: Tail,
    ) {
        let head = thread.head();
        let mut owner = Self::new(thread, head);
        owner.meter = self.meter.take();
        let owner = owner.opened(node, None, Some(failure), now);
        *self = owner.since_base(tail);
    }

    /// Continues from the stored state, after an append of which nothing was stored. The thread has
    /// no other owner, so ownership is not taken again, and the numbers of that append were never
    /// announced.
    pub fn reset_to_stored(&mut self, thread: Thread, tail: Tail) {
        let mut owner = Self::new(thread, self.stored);
        owner.next = owner.stored.next();
        owner.barrier_stored = true;
        *self = owner.since_base(tail);
    }

    /// Failure with which the turn ends, until that is stored.
    pub fn fails(&self) -> Option<&Failure> {
        self.fails.as_ref()
    }

    /// Takes ownership of a copy of a thread's journal, to continue it as another thread.
    pub fn fork(thread: Thread, fork: Forked, node: WriterNode, now: Timestamp) -> Self {
        let head = thread.head();
        Self::new(thread, head).opened(node, Some(Box::new(fork)), None, now)
    }

    fn opened(
        mut self,
        node: WriterNode,
        fork: Option<Box<Forked>>,
        fails: Option<Failure>,
        now: Timestamp,
    ) -> Self {
        let head = self.stored;
        let mut batch = Batch::new(head);
        self.fails = fails.clone().filter(|_| self.thread.turn.is_some());
        let fails = fails.map(Box::new);
        self.take(&mut batch, node, fork, fails, now);
        self.advance(&mut batch, now);
        self.finish(&mut batch);
        self.batch = Some(batch);
        self
    }

    fn new(thread: Thread, stored: Seq) -> Self {
        // Numbers up to the former owner's reserve may have been announced and lost, unless its
        // release, which survives everything, is here.
        let released = thread.owner.as_ref().is_none_or(|owner| owner.released);
        let next = if released || crate::bugs::planted(crate::bugs::Bug::NumberReused) {
            stored.next()
        } else {
            stored.max(thread.reserved()).next()
        };
        Self {
            thread,
            stored,
            next,
            inbox: Inbox::default(),
            batch: None,
            unknown: false,
            in_doubt: false,
            barrier_stored: false,
            running: BTreeSet::new(),
            meter: None,
            waiters: Vec::new(),
            events_since_base: 0,
            bytes_since_base: 0,
            fails: None,
            ended: None,
        }
    }

    /// Writes the barrier, the first record of an owner.
    fn take(
        &mut self,
        batch: &mut Batch,
        node: WriterNode,
        fork: Option<Box<Forked>>,
        fails: Option<Box<Failure>>,
        now: Timestamp,
    ) {
        let own = Own {
            epoch: node.epoch,
            node: node.name,
            head: self.stored,
            reserved: self.next.plus(reserve()),
            recovery: node.recovery,
            fork,
            fails,
        };
        self.ended = match self.command(batch, Command::Own(own), now) {
            Ok(_) => None,
            Err(Refusal::Deleted) => Some(WriterEnd::Deleted),
            Err(_) => Some(WriterEnd::OwnedElsewhere),
        };
    }

    /// Counts the records since the base that the thread was folded from, so that the next base
    /// comes in time however short each owner's epoch is.
    #[must_use]
    pub fn since_base(mut self, tail: Tail) -> Self {
        self.events_since_base += tail.events;
        self.bytes_since_base += tail.bytes;
        self
    }

    /// The thread as it will be once the append under way is stored. Only its own task may read it.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The thread as stored and announced; `None` while an append is under way, or after one
    /// failed.
    pub fn stored_thread(&self) -> Option<&Thread> {
        let is_stored = self.batch.is_none() && self.thread.head() <= self.stored;
        is_stored.then_some(&self.thread)
    }

    /// Head of the journal.
    pub fn stored(&self) -> Seq {
        self.stored
    }

    /// Whether the task has ended.
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the work that was started and has neither stopped nor reported its end.
    pub fn running(&self) -> impl Iterator<Item = &Effect> {
        self.running.iter()
    }

    /// Sets the meter of a model call, which is read if the call is cut off.
    pub fn meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// Whether a report of work would be accepted now. A source with a report waits until it is.
    pub fn has_capacity(&self) -> bool {
        self.inbox.has_capacity()
    }

    /// Puts an envelope into the inbox; returns it if there is no capacity.
    pub fn offer(&mut self, envelope: Envelope) -> Result<(), Box<Envelope>> {
        self.inbox.offer(envelope)
    }

    /// Returns the next step.
    pub fn step(&mut self, now: Timestamp) -> Step {
        if let Some(ended) = &self.ended {
            return Step::Ended(ended.clone());
        }
        if self.unknown {
            return Step::ReadHead;
        }
        if self.batch.is_none() {
            let mut batch = Batch::new(self.stored);
            self.round(&mut batch, now);
            self.finish(&mut batch);
            if batch.records.is_empty() {
                let actions = self.settle(batch);
                if actions.is_empty() {
                    return Step::Wait(self.thread.wake_at());
                }
                return Step::Do(actions);
            }
            self.batch = Some(batch);
        }
        let Some(batch) = &mut self.batch else {
            return Step::Wait(None);
        };
        if crate::bugs::planted(crate::bugs::Bug::SentBeforeStored)
            && !batch.announcements.is_empty()
        {
            let announcements = std::mem::take(&mut batch.announcements);
            let actions = announcements.into_iter().map(WriterAction::Announce);
            return Step::Do(actions.collect());
        }
        Step::Append {
            after: batch.after,
            records: batch.records.clone(),
            class: batch.class,
        }
    }

    /// Handles the result of the append.
    pub fn appended(&mut self, result: Result<Seq, AppendError>) -> Vec<WriterAction> {
        let Some(batch) = self.batch.take() else {
            return Vec::new();
        };
        match result {
            Ok(_) => {
                self.barrier_stored = true;
                self.fails = None;
                self.in_doubt = false;
                self.stored = batch.last();
                self.settle(batch)
            }
            Err(AppendError::Conflict) => self.end(WriterEnd::OwnedElsewhere, Some(batch)),
            Err(AppendError::Unavailable(_)) => {
                self.batch = Some(batch);
                Vec::new()
            }
            // The only thing left for this turn is to store its end.
            Err(AppendError::Full(_)) if self.fails.is_some() => {
                self.batch = Some(batch);
                Vec::new()
            }
            Err(AppendError::Unknown(_)) => {
                self.batch = Some(batch);
                self.unknown = true;
                self.in_doubt = true;
                Vec::new()
            }
            // The refusal itself says that the journal cannot be written.
            Err(AppendError::ReadOnly(why)) => self.end(WriterEnd::NotStored(why), Some(batch)),
            Err(
                error @ (AppendError::Full(_) | AppendError::NoBlob(_) | AppendError::Newer(_)),
            ) => self.end(WriterEnd::NotStored(error.to_string()), Some(batch)),
        }
    }

    /// Handles the head that was read, which settles an append with an unknown outcome.
    pub fn head_is(&mut self, head: Seq) -> Vec<WriterAction> {
        let Some(batch) = self.batch.take().filter(|_| self.unknown) else {
            return Vec::new();
        };
        self.unknown = false;
        // A later owner would have moved the head beyond our reserve. Only the barrier itself could
        // have the same number as another owner's. An owner that does not know whether its barrier
        // is stored takes ownership again.
        if head == batch.last() && self.barrier_stored {
            self.in_doubt = false;
            self.stored = head;
            self.settle(batch)
        } else if head == batch.after {
            self.batch = Some(batch);
            Vec::new()
        } else {
            self.end(WriterEnd::OwnedElsewhere, Some(batch))
        }
    }

    /// Ends the task because the journal was unavailable for too long. Waiting callers get an
    /// error, and the next owner continues from what is stored.
    pub fn give_up(&mut self, reason: String) -> Vec<WriterAction> {
        let batch = self.batch.take();
        self.end(WriterEnd::NotStored(reason), batch)
    }

    /// Decides everything in the inbox, and then the steps that follow without a command.
    fn round(&mut self, batch: &mut Batch, now: Timestamp) {
        while let Some(envelope) = self.inbox.next(batch.is_full()) {
            match envelope {
                Envelope::Subscribe { token, cursor } => batch.subscribers.push((token, cursor)),
                Envelope::Command {
                    command,
                    token,
                    key,
                } => {
                    let done = self.ended_effect(&command);
                    let stops = match &command {
                        Command::Interrupt(it) => Some(it.turn.clone()),
                        _ => None,
                    };
                    let result = match &key {
                        Some(key) => self.command_once(batch, command, key, now),
                        None => self.command(batch, command, now),
                    };
                    if result.is_ok()
                        && let Some(done) = done
                    {
                        self.running.remove(&done);
                    }
                    // An interrupt repeated after its turn has ended must not wait for another
                    // turn's end.
                    let stopping = self.thread.turn.as_ref().filter(|turn| {
                        let named = |named: Option<TurnId>| named.is_none_or(|it| it == turn.id);
                        turn.stopping.is_some() && stops.is_some_and(named)
                    });
                    match (token, &result, stopping) {
                        (None, ..) => {}
                        (Some(token), Ok(_), Some(turn)) => {
                            self.waiters.push((turn.id.clone(), token));
                        }
                        (Some(token), ..) => batch.replies.push((token, result)),
                    }
                    self.advance(batch, now);
                }
            }
        }
        self.advance(batch, now);
    }

    /// Returns the work whose end this command reports.
    fn ended_effect(&self, command: &Command) -> Option<Effect> {
        if let Command::BeginTurn(_) = command {
            let after = self.thread.turn_at;
            return Some(Effect::BeginTurn { after });
        }
        let turn = self.thread.turn.as_ref()?.id.clone();
        match command {
            Command::EndModel(it) => Some(Effect::CallModel {
                turn,
                call: it.call,
            }),
            Command::EndTool(it) => Some(Effect::RunTool {
                turn,
                item: it.item.clone(),
            }),
            _ => None,
        }
    }

    fn advance(&mut self, batch: &mut Batch, now: Timestamp) {
        for _ in 0..ADVANCES_MAX {
            let bodies = self.thread.advance(now);
            if bodies.is_empty() {
                return;
            }
            self.push(batch, bodies, now);
        }
        panic!("the rules of a thread never come to rest");
    }

    /// Returns the actions for what is stored, in this order: callers, subscribers, work.
    fn settle(&mut self, batch: Batch) -> Vec<WriterAction> {
        let mut actions = Vec::new();
        let replies = batch.replies.into_iter();
        actions.extend(replies.map(|(token, result)| WriterAction::Reply(token, result)));
        let runs = self.thread.turn.as_ref().map(|turn| turn.id.clone());
        self.waiters.retain(|(turn, token)| {
            let over = runs.as_ref() != Some(turn);
            if over {
                actions.push(WriterAction::Reply(*token, Ok(CommandOutcome::Done {})));
            }
            !over
        });
        for announcement in batch.announcements {
            let request = announcement
                .opened_request()
                .filter(|it| batch.asks.contains(it));
            actions.push(WriterAction::Announce(announcement));
            // Sent at once, so that the order does not depend on other messages of this round.
            actions.extend(request.map(WriterAction::Ask));
        }
        actions.extend(
            batch
                .deliveries
                .into_iter()
                .map(|(item, request, resolution)| {
                    WriterAction::Deliver(item, request, resolution)
                }),
        );
        for (token, cursor) in batch.subscribers {
            actions.push(WriterAction::Subscribed(self.subscribe(token, cursor)));
        }
        self.start_and_stop(&mut actions);
        if batch.base
            || self.events_since_base >= base_events_max()
            || self.bytes_since_base >= BASE_BYTES_MAX
        {
            self.events_since_base = 0;
            self.bytes_since_base = 0;
            actions.push(WriterAction::SaveBase(Box::new(Base::of(&self.thread))));
        }
        if self.thread.is_deleted() {
            actions.extend(self.end(WriterEnd::Deleted, None));
        } else if batch.released {
            actions.extend(self.end(WriterEnd::Released, None));
        }
        actions
    }

    fn subscribe(&self, token: Token, cursor: Option<Seq>) -> SubscriptionStart {
        let after = match cursor {
            Some(cursor) if crate::bugs::planted(crate::bugs::Bug::CursorOffByOne) => cursor.next(),
            Some(cursor) => cursor,
            None => self.stored,
        };
        SubscriptionStart {
            token,
            cursor: cursor.map_or(CursorStatus::Good, |cursor| self.thread.cursor(cursor)),
            after,
            head: self.stored,
        }
    }

    fn start_and_stop(&mut self, actions: &mut Vec<WriterAction>) {
        let pending: BTreeSet<Effect> = self.thread.pending().into_iter().collect();
        let stopped = self.running.difference(&pending);
        // A stopped tool that has ended needs no further action.
        actions.extend(
            stopped
                .filter(|effect| !matches!(effect, Effect::StopTool { .. }))
                .cloned()
                .map(WriterAction::Stop),
        );
        actions.extend(
            pending
                .difference(&self.running)
                .cloned()
                .map(WriterAction::Start),
        );
        self.running = pending;
    }

    /// Ends the task: waiting callers get the reason, and everything that runs is stopped. Callers
    /// whose commands may have been stored must not repeat them unseen.
    fn end(&mut self, ended: WriterEnd, batch: Option<Batch>) -> Vec<WriterAction> {
        let refusal = match &ended {
            WriterEnd::OwnedElsewhere | WriterEnd::Released => Refusal::OwnedElsewhere,
            WriterEnd::NotStored(reason) => Refusal::NotStored(reason.clone()),
            WriterEnd::Deleted => Refusal::Deleted,
        };
        self.ended = Some(ended);
        let refusal_of_decided = match self.in_doubt {
            true => Refusal::OutcomeUnknown,
            false => refusal.clone(),
        };
        let (replies, subscribers) = batch
            .map(|batch| (batch.replies, batch.subscribers))
            .unwrap_or_default();
        let mut actions: Vec<WriterAction> = replies
            .into_iter()
            .map(|(token, _)| WriterAction::Reply(token, Err(refusal_of_decided.clone())))
            .collect();
        let subscribers = subscribers.into_iter().map(|(token, _)| token);
        let waiting = std::mem::take(&mut self.waiters).into_iter();
        let others = subscribers.chain(waiting.map(|(_, token)| token));
        let others = others.chain(self.inbox.drain());
        actions.extend(others.map(|token| WriterAction::Reply(token, Err(refusal.clone()))));
        let running = std::mem::take(&mut self.running).into_iter();
        actions.extend(
            running
                .filter(|effect| !matches!(effect, Effect::StopTool { .. }))
                .map(WriterAction::Stop),
        );
        actions
    }
}
