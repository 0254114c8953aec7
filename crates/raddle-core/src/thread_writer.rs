//! The owner's round: what the one task that may write a thread does, without I/O.
//!
//! Each round takes what came in, decides all of it, hands out one append, and only when that is stored
//! answers the callers, tells everyone else and starts what is owed. The thread held here runs ahead of
//! the journal by at most the append that is under way, and nobody sees it before that is stored.

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

/// How many numbers an owner reserves at a time.
fn reserve() -> u64 {
    crate::bugs::bound(10_000, 80)
}

/// How many events a base may lie behind, and how many bytes.
fn base_events_max() -> u64 {
    crate::bugs::bound(1000, 25)
}

const BASE_BYTES_MAX: u64 = 4 << 20;

/// Who takes a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterNode {
    /// Its name.
    pub name: String,
    /// The reign it was granted.
    pub epoch: Epoch,
    /// What becomes here of a turn whose owner died, where the thread's settings do not say.
    pub recovery: Recovery,
}

/// What lay between a thread's newest base and its head when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// How many events.
    pub events: u64,
    /// About how many bytes of records.
    pub bytes: u64,
}

impl Tail {
    /// One more record was folded.
    pub fn count(&mut self, record: &Record) {
        self.events += u64::from(matches!(record.body, RecordBody::Event(_)));
        self.bytes += batch::weight(&record.body);
    }
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Append this, then call [`Owner::appended`].
    Append {
        /// The head it must follow.
        after: Seq,
        /// What to append.
        records: Vec<Record>,
        /// What it must survive.
        class: Class,
    },
    /// Read the head, then call [`Owner::head_is`].
    ReadHead,
    /// Nothing had to be stored; do these.
    Do(Vec<WriterAction>),
    /// Nothing to do until something comes in, or until then.
    Wait(Option<Timestamp>),
    /// The task is over.
    Ended(WriterEnd),
}

/// Why a task is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEnd {
    /// Someone else writes now.
    OwnedElsewhere,
    /// The journal took nothing more.
    NotStored(String),
    /// The thread was deleted.
    Deleted,
    /// It left in good order.
    Released,
}

/// What goes out once something is stored.
#[derive(Debug, PartialEq)]
pub enum WriterAction {
    /// Answer a caller.
    Reply(Token, Result<CommandOutcome, Refusal>),
    /// A caller subscribed; what it missed is in the journal, what comes follows live.
    Subscribed(SubscriptionStart),
    /// Tell the subscribers.
    Tell(Announcement),
    /// Ask the subscribers.
    Ask(RequestNumber),
    /// Hand a running tool the answer to its question.
    Deliver(ItemId, RequestNumber, Resolution),
    /// Start work.
    Start(Effect),
    /// Stop work whose end nobody waits for.
    Stop(Effect),
    /// Keep a snapshot.
    SaveBase(Box<Base>),
}

/// Where a new subscriber stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionStart {
    /// Who.
    pub token: Token,
    /// Whether what it saw can be gone on from.
    pub cursor: CursorStatus,
    /// It needs the records after this one,
    pub after: Seq,
    /// up to this one; what comes later reaches it live.
    pub head: Seq,
}

/// A record, and what the wire says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// The record.
    pub record: Record,
    /// In this order; only the last carries the record's number.
    pub notifications: Vec<Notification>,
}

impl Announcement {
    /// What a client is asked with it.
    fn asked(&self) -> Option<RequestNumber> {
        let RecordBody::Event(event) = &self.record.body else {
            return None;
        };
        match &**event {
            Event::RequestOpened(it) => Some(it.request),
            _ => None,
        }
    }
}

/// How often one thing may follow from another. More is a rule that contradicts itself: better that one
/// thread ends than that the server's memory does.
const ADVANCES_MAX: usize = 100_000;

/// The one writer of a thread.
#[derive(Debug)]
pub struct ThreadWriter {
    thread: Thread,
    /// The head in the journal.
    stored: Seq,
    next: Seq,
    inbox: Inbox,
    batch: Option<Batch>,
    /// Whether the fate of the batch is not known.
    unknown: bool,
    /// Whether the barrier is known to be stored.
    taken: bool,
    running: BTreeSet<Effect>,
    /// Tells what the call of the model has used that runs.
    meter: Option<Meter>,
    /// Callers who wait for a turn to end.
    waiters: Vec<(TurnId, Token)>,
    events_since_base: u64,
    bytes_since_base: u64,
    /// The failure with which the first append ends the turn that it finds, until that is stored.
    fails: Option<Failure>,
    ended: Option<WriterEnd>,
}

impl ThreadWriter {
    /// Begins a new thread.
    pub fn start(start: ThreadStarted, node: WriterNode, now: Timestamp) -> Self {
        let mut owner = Self::new(Thread::new(), Seq::ZERO);
        let mut batch = Batch::new(Seq::ZERO);
        let start = Command::StartThread(Box::new(start));
        owner.command(&mut batch, start, now).ok();
        owner.take(&mut batch, node, None, None, now);
        owner.batch = Some(batch);
        owner
    }

    /// Takes a thread that was folded from a journal whose head is `found`.
    pub fn open(thread: Thread, found: Seq, node: WriterNode, now: Timestamp) -> Self {
        Self::new(thread, found).opened(node, None, None, now)
    }

    /// Takes a thread that was folded from a journal, and ends its open turn with this failure. The
    /// journal's owner stored nothing more of that turn, because the journal was full; so its end is
    /// the first append, and is tried again for as long as the journal stays full.
    pub fn open_to_fail(
        thread: Thread,
        node: WriterNode,
        failure: Failure,
        now: Timestamp,
    ) -> Self {
        let found = thread.head();
        Self::new(thread, found).opened(node, None, Some(failure), now)
    }

    /// Takes the thread anew, as it is stored, after an append that the journal had no room for, and
    /// ends its open turn with this failure.
    pub fn fail_turn(
        &mut self,
        thread: Thread,
        node: WriterNode,
        failure: Failure,
        now: Timestamp,
        tail: Tail,
    ) {
        let found = thread.head();
        let mut owner = Self::new(thread, found);
        owner.meter = self.meter.take();
        let owner = owner.opened(node, None, Some(failure), now);
        *self = owner.since_base(tail);
    }

    /// Goes on with the thread as it is stored, after an append of which nothing was stored. Nobody else has the
    /// thread, so nothing is taken anew, and the numbers of that append were told to nobody.
    pub fn reset_to_stored(&mut self, thread: Thread, tail: Tail) {
        let mut owner = Self::new(thread, self.stored);
        owner.next = owner.stored.next();
        owner.taken = true;
        *self = owner.since_base(tail);
    }

    /// The failure with which the turn ends, as long as that is not stored.
    pub fn fails(&self) -> Option<&Failure> {
        self.fails.as_ref()
    }

    /// Takes a copy of a thread's journal, to go on from it as another thread.
    pub fn fork(thread: Thread, fork: Forked, node: WriterNode, now: Timestamp) -> Self {
        let found = thread.head();
        Self::new(thread, found).opened(node, Some(Box::new(fork)), None, now)
    }

    fn opened(
        mut self,
        node: WriterNode,
        fork: Option<Box<Forked>>,
        fails: Option<Failure>,
        now: Timestamp,
    ) -> Self {
        let found = self.stored;
        let mut batch = Batch::new(found);
        self.fails = fails.clone().filter(|_| self.thread.turn.is_some());
        let fails = fails.map(Box::new);
        self.take(&mut batch, node, fork, fails, now);
        self.advance(&mut batch, now);
        self.finish(&mut batch);
        self.batch = Some(batch);
        self
    }

    fn new(thread: Thread, stored: Seq) -> Self {
        // Numbers up to the former owner's reserve may have been told and then lost, unless its last
        // word, which survives everything, is here.
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
            taken: false,
            running: BTreeSet::new(),
            meter: None,
            waiters: Vec::new(),
            events_since_base: 0,
            bytes_since_base: 0,
            fails: None,
            ended: None,
        }
    }

    /// The barrier: the first thing an owner writes.
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
            found: self.stored,
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

    /// This owner's thread was folded from a base and this much after it, so that the next base comes when
    /// it should however short each owner's reign is.
    #[must_use]
    pub fn since_base(mut self, tail: Tail) -> Self {
        self.events_since_base += tail.events;
        self.bytes_since_base += tail.bytes;
        self
    }

    /// The thread as it will be once what is under way is stored. For its own task's eyes only.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The thread as it is stored and was told; nothing while an append is under way, or after one failed.
    pub fn settled(&self) -> Option<&Thread> {
        let is_stored = self.batch.is_none() && self.thread.head() <= self.stored;
        is_stored.then_some(&self.thread)
    }

    /// The head in the journal.
    pub fn stored(&self) -> Seq {
        self.stored
    }

    /// Whether nothing more is decided here.
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Work that was started and not yet stopped or reported.
    pub fn running(&self) -> impl Iterator<Item = &Effect> {
        self.running.iter()
    }

    /// This tells what a call of the model has used, should it be cut off.
    pub fn meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// Whether a report of work would be taken now. Whoever has one waits until it is.
    pub fn has_capacity(&self) -> bool {
        self.inbox.has_capacity()
    }

    /// Puts something into the inbox; gives it back if there is no room.
    pub fn offer(&mut self, envelope: Envelope) -> Result<(), Box<Envelope>> {
        self.inbox.offer(envelope)
    }

    /// What to do next.
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
                let outs = self.settle(batch);
                if outs.is_empty() {
                    return Step::Wait(self.thread.wake_at());
                }
                return Step::Do(outs);
            }
            self.batch = Some(batch);
        }
        let Some(batch) = &mut self.batch else {
            return Step::Wait(None);
        };
        if crate::bugs::planted(crate::bugs::Bug::ToldBeforeStored)
            && !batch.announcements.is_empty()
        {
            let tells = std::mem::take(&mut batch.announcements);
            return Step::Do(tells.into_iter().map(WriterAction::Tell).collect());
        }
        Step::Append {
            after: batch.after,
            records: batch.records.clone(),
            class: batch.class,
        }
    }

    /// What came of the append.
    pub fn appended(&mut self, result: Result<Seq, AppendError>) -> Vec<WriterAction> {
        let Some(batch) = self.batch.take() else {
            return Vec::new();
        };
        match result {
            Ok(_) => {
                self.taken = true;
                self.fails = None;
                self.stored = batch.last();
                self.settle(batch)
            }
            Err(AppendError::Conflict) => self.end(WriterEnd::OwnedElsewhere, Some(batch)),
            Err(AppendError::Unavailable(_)) => {
                self.batch = Some(batch);
                Vec::new()
            }
            // There is nothing else to do for this turn but to store its end.
            Err(AppendError::Full(_)) if self.fails.is_some() => {
                self.batch = Some(batch);
                Vec::new()
            }
            Err(AppendError::Unknown(_)) => {
                self.batch = Some(batch);
                self.unknown = true;
                Vec::new()
            }
            Err(
                error @ (AppendError::Full(_)
                | AppendError::ReadOnly(_)
                | AppendError::NoBlob(_)
                | AppendError::Newer(_)),
            ) => self.end(WriterEnd::NotStored(error.to_string()), Some(batch)),
        }
    }

    /// The head is here: that settles an append whose fate was not known.
    pub fn head_is(&mut self, head: Seq) -> Vec<WriterAction> {
        let Some(batch) = self.batch.take().filter(|_| self.unknown) else {
            return Vec::new();
        };
        self.unknown = false;
        // A later owner would have moved it beyond our reserve. Only the barrier itself is numbered as
        // another's would be: who does not know whether it is stored takes the thread anew.
        if head == batch.last() && self.taken {
            self.stored = head;
            self.settle(batch)
        } else if head == batch.after {
            self.batch = Some(batch);
            Vec::new()
        } else {
            self.end(WriterEnd::OwnedElsewhere, Some(batch))
        }
    }

    /// The journal was away for too long: whoever waits is told, and whoever comes next finds what is stored.
    pub fn give_up(&mut self, why: String) -> Vec<WriterAction> {
        let batch = self.batch.take();
        self.end(WriterEnd::NotStored(why), batch)
    }

    /// Everything that came in is decided, and then what follows by itself.
    fn round(&mut self, batch: &mut Batch, now: Timestamp) {
        while let Some(envelope) = self.inbox.next(batch.is_full()) {
            match envelope {
                Envelope::Subscribe { token, seen } => batch.subscribers.push((token, seen)),
                Envelope::Command {
                    command,
                    token,
                    key,
                } => {
                    let done = self.reported(&command);
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
                    // Asked again after its turn is over, a stop must not wait for another turn's end.
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

    /// The work that reports its own end with this command.
    fn reported(&self, command: &Command) -> Option<Effect> {
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

    /// What is stored is told, in this order: the callers, the subscribers, the work.
    fn settle(&mut self, batch: Batch) -> Vec<WriterAction> {
        let mut outs = Vec::new();
        let replies = batch.replies.into_iter();
        outs.extend(replies.map(|(token, result)| WriterAction::Reply(token, result)));
        let runs = self.thread.turn.as_ref().map(|turn| turn.id.clone());
        self.waiters.retain(|(turn, token)| {
            let over = runs.as_ref() != Some(turn);
            if over {
                outs.push(WriterAction::Reply(*token, Ok(CommandOutcome::Done {})));
            }
            !over
        });
        for told in batch.announcements {
            let asked = told.asked().filter(|it| batch.asks.contains(it));
            outs.push(WriterAction::Tell(told));
            // At once, so that the order does not hang on what else came in this round.
            outs.extend(asked.map(WriterAction::Ask));
        }
        outs.extend(
            batch
                .deliveries
                .into_iter()
                .map(|(item, request, resolution)| {
                    WriterAction::Deliver(item, request, resolution)
                }),
        );
        for (token, seen) in batch.subscribers {
            outs.push(WriterAction::Subscribed(self.subscribe(token, seen)));
        }
        self.start_and_stop(&mut outs);
        if batch.base
            || self.events_since_base >= base_events_max()
            || self.bytes_since_base >= BASE_BYTES_MAX
        {
            self.events_since_base = 0;
            self.bytes_since_base = 0;
            outs.push(WriterAction::SaveBase(Box::new(Base::of(&self.thread))));
        }
        if self.thread.is_deleted() {
            outs.extend(self.end(WriterEnd::Deleted, None));
        } else if batch.released {
            outs.extend(self.end(WriterEnd::Released, None));
        }
        outs
    }

    fn subscribe(&self, token: Token, seen: Option<Seq>) -> SubscriptionStart {
        let after = match seen {
            Some(seen) if crate::bugs::planted(crate::bugs::Bug::CursorOffByOne) => seen.next(),
            Some(seen) => seen,
            None => self.stored,
        };
        SubscriptionStart {
            token,
            cursor: seen.map_or(CursorStatus::Good, |seen| self.thread.cursor(seen)),
            after,
            head: self.stored,
        }
    }

    fn start_and_stop(&mut self, outs: &mut Vec<WriterAction>) {
        let pending: BTreeSet<Effect> = self.thread.pending().into_iter().collect();
        let stopped = self.running.difference(&pending);
        // What was told to stop and is gone needs no word.
        outs.extend(
            stopped
                .filter(|effect| !matches!(effect, Effect::StopTool { .. }))
                .cloned()
                .map(WriterAction::Stop),
        );
        outs.extend(
            pending
                .difference(&self.running)
                .cloned()
                .map(WriterAction::Start),
        );
        self.running = pending;
    }

    /// The task is over: everyone who waits is told why, and everything that runs is stopped.
    fn end(&mut self, ended: WriterEnd, batch: Option<Batch>) -> Vec<WriterAction> {
        let refusal = match &ended {
            WriterEnd::OwnedElsewhere | WriterEnd::Released => Refusal::OwnedElsewhere,
            WriterEnd::NotStored(why) => Refusal::NotStored(why.clone()),
            WriterEnd::Deleted => Refusal::Deleted,
        };
        self.ended = Some(ended);
        let decided = batch.into_iter().flat_map(|batch| {
            let subscribers = batch.subscribers.into_iter().map(|(token, _)| token);
            let replies = batch.replies.into_iter().map(|(token, _)| token);
            replies.chain(subscribers).collect::<Vec<_>>()
        });
        let waiting = std::mem::take(&mut self.waiters).into_iter();
        let tokens = decided.chain(waiting.map(|(_, token)| token));
        let mut outs: Vec<WriterAction> = tokens
            .chain(self.inbox.drain())
            .map(|token| WriterAction::Reply(token, Err(refusal.clone())))
            .collect();
        let running = std::mem::take(&mut self.running).into_iter();
        outs.extend(
            running
                .filter(|effect| !matches!(effect, Effect::StopTool { .. }))
                .map(WriterAction::Stop),
        );
        outs
    }
}
