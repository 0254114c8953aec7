//! The promises, each as a function that finds the first place where it is broken.
//!
//! The oracle of a thread knows what was ever stored and not lost, what was told, and what follows from
//! both by rules of its own; it believes the core's fold only where it compares it with another.

pub mod context;
pub mod ending;
mod power;
pub mod rejoin;
pub mod requests;
mod rulings;
mod situation;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use raddle_core::ports::Summary;
use raddle_core::{
    Announcement, Epoch, Event, InjectedItem, Input, ItemBody, ItemId, ModelEnd, Purpose, Record,
    RecordBody, RequestNumber, Resolution, Seq, Span, Thread, TurnId, tell, tell_again,
};

use raddle_protocol::Notification;

use self::rulings::Rulings;
use crate::client_view::ClientView;
use crate::store::{Log, LogRow};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// Which.
    pub promise: &'static str,
    /// How.
    pub how: String,
}

/// What a check finds.
pub type Check = Result<(), BrokenPromise>;

/// A promise was broken.
pub fn broken(promise: &'static str, how: impl Into<String>) -> Check {
    Err(BrokenPromise {
        promise,
        how: how.into(),
    })
}

/// Someone who opened a thread: the node and which of its openings it was.
pub type WriterId = (usize, u64);

/// What is known of one thread from outside.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Everything that was stored and not lost, deltas of settled items included.
    pub ever: BTreeMap<Seq, Rc<LogRow>>,
    /// The fold of it.
    pub fold: Thread,
    /// What someone believes who heard all of it and never left.
    pub picture: ClientView,
    summary: Option<Summary>,
    /// Who wrote last, in which epoch.
    pub writer: Option<(WriterId, Epoch)>,
    epochs: BTreeMap<Epoch, WriterId>,
    /// What was told, also if it was lost later.
    pub told: BTreeMap<Seq, Rc<Record>>,
    /// Numbers that were stored and lost.
    pub lost: BTreeSet<Seq>,
    /// What the wire says of records, for runs that compare it.
    expected: Option<BTreeMap<Seq, Vec<Notification>>>,
    /// Turns and their first records.
    pub turns: Vec<(TurnId, Seq)>,
    open_turn: Option<TurnId>,
    /// What was taken back.
    cuts: Vec<Span>,
    items: BTreeMap<ItemId, ItemFacts>,
    requests: BTreeMap<RequestNumber, ItemId>,
    resolved: BTreeMap<RequestNumber, Resolution>,
    rulings: Rulings,
    /// Texts of users, each sent once.
    inputs: BTreeSet<String>,
    /// Those the model has to read at its next call,
    heard: Vec<String>,
    /// what they were before each turn,
    heard_before: BTreeMap<Seq, Vec<String>>,
    /// and how many of them a summary that is being made will stand for.
    condensing: usize,
    /// Whether the call of the model that runs has condensed the history.
    condensed: bool,
    /// Whether the model is at work.
    answering: bool,
    /// How its newest call in the turn ended, until the next.
    ended: Option<ModelEnd>,
    /// Turns of which a client was told that they are there.
    pub held: BTreeSet<TurnId>,
}

#[derive(Clone, Debug, Default)]
struct ItemFacts {
    tool: bool,
    /// Whether the user runs it.
    users: bool,
    open: bool,
    asks: bool,
    allowed: bool,
    started: bool,
    message: bool,
    began: Seq,
    saved: Option<Seq>,
}

impl Oracle {
    /// Before the first record.
    pub fn new(compares_tells: bool) -> Self {
        Self {
            expected: compares_tells.then(BTreeMap::new),
            ..Self::default()
        }
    }

    /// Something was stored, after `after`.
    pub fn stored(&mut self, writer: WriterId, after: Seq, rows: &[Rc<LogRow>]) -> Check {
        self.i7_prefix(after, rows)?;
        self.i6_numbers_are_reserved(rows)?;
        for row in rows {
            self.i2_one_writer_per_epoch(writer, &row.record)?;
            self.i6_numbers_are_not_reused(&row.record)?;
            self.check_record(&row.record)?;
            self.take(row);
            self.i8_projections_are_derived(&row.record)?;
            let told = tell(&self.fold, &row.record);
            rejoin::i1_makes_sense(self.picture.hear_all(&told))?;
            if let Some(expected) = &mut self.expected {
                expected.insert(row.record.seq, told);
            }
        }
        self.i4_withdrawn_with_their_items(rows)?;
        context::well_formed(self, rows)
    }

    /// Takes over what was copied in from another thread's log, unchecked: it was checked there.
    pub fn copied(&mut self, rows: &[Rc<LogRow>]) -> Check {
        rows.iter().try_for_each(|row| self.take_again(row))
    }

    /// Takes what is left of a log, as someone hears it who was not there when it was told.
    fn take_again(&mut self, row: &Rc<LogRow>) -> Check {
        let told = tell_again(&mut self.fold, &row.record);
        self.note_down(row);
        rejoin::i1_makes_sense(self.picture.hear_all(&told))
    }

    fn take(&mut self, row: &Rc<LogRow>) {
        self.fold.apply(&row.record);
        self.note_down(row);
    }

    fn note_down(&mut self, row: &Rc<LogRow>) {
        self.ever.insert(row.record.seq, row.clone());
        Summary::fold(&mut self.summary, &row.record);
        self.note(&row.record);
    }

    fn check_record(&self, record: &Record) -> Check {
        ending::i5_ending(self, record)?;
        requests::i4_requests(self, record)?;
        self.rulings.check(record)?;
        if let RecordBody::Event(event) = &record.body {
            self.goes_back_to_what_counts(event)?;
        }
        self.i3_no_silent_run(record)
    }

    fn note(&mut self, record: &Record) {
        self.rulings.note(record);
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::TurnStarted(it) => {
                self.open_turn = Some(it.turn.clone());
                self.heard_before.insert(record.seq, self.heard.clone());
                self.turns.push((it.turn.clone(), record.seq));
            }
            Event::TurnEnded(_) => {
                self.open_turn = None;
                self.ended = None;
            }
            Event::ItemStarted(it) => {
                let item = ItemFacts {
                    tool: it.gate.is_some(),
                    users: it.item.is_users_command(),
                    open: true,
                    asks: it.gate.is_some_and(|gate| gate != raddle_core::Gate::Open),
                    message: matches!(it.item.body, ItemBody::AgentMessage(_)),
                    began: record.seq,
                    ..ItemFacts::default()
                };
                self.items.insert(it.item.id.clone(), item);
            }
            Event::InputAccepted(it) => {
                self.items.insert(it.item.id.clone(), ItemFacts::default());
                if let Some(text) = text_of(&it.item.body) {
                    self.heard.push(text.clone());
                    self.inputs.insert(text);
                }
            }
            Event::ItemsInjected(it) => {
                let said = it.items.iter().filter_map(said);
                self.heard.extend(said);
            }
            Event::ModelCalled(it) => {
                self.answering = true;
                self.ended = None;
                if it.purpose == Purpose::Compact {
                    self.condensing = self.heard.len();
                }
            }
            Event::ModelEnded(it) => {
                self.answering = false;
                self.ended = Some(it.end.clone());
                self.condensed = false;
            }
            Event::Compacted(_) => {
                self.condensed = true;
                self.heard.drain(..self.condensing);
            }
            Event::Reverted(it) => {
                self.cuts.push(Span {
                    from: it.at,
                    until: Some(record.seq),
                });
                self.heard = self.heard_before.get(&it.at).cloned().unwrap_or_default();
            }
            Event::ToolStarted(it) => {
                if let Some(item) = self.items.get_mut(&it.item) {
                    item.started = true;
                }
            }
            Event::ItemSaved(it) => {
                if let Some(item) = self.items.get_mut(&it.item) {
                    item.saved = Some(record.seq);
                }
            }
            Event::ItemCompleted(it) => {
                if let Some(item) = self.items.get_mut(&it.item.id) {
                    item.open = false;
                }
            }
            Event::RequestOpened(it) => {
                self.requests.insert(it.request, it.item.clone());
            }
            Event::RequestResolved(it) => {
                let item = self.requests.remove(&it.request);
                let item = item.and_then(|item| self.items.get_mut(&item));
                if let Some(item) = item.filter(|_| requests::is_yes(&it.resolution)) {
                    item.allowed = true;
                }
                self.resolved.insert(it.request, it.resolution.clone());
            }
            _ => {}
        }
    }

    /// I2: epochs never fall, each has one owner, and nobody writes in another's.
    fn i2_one_writer_per_epoch(&mut self, writer: WriterId, record: &Record) -> Check {
        const I2: &str = "I2 one writer per epoch";
        if let RecordBody::Event(event) = &record.body
            && let Event::Owned(it) = &**event
        {
            if self.writer.is_some_and(|(_, epoch)| epoch >= it.epoch) {
                return broken(I2, format!("epoch {:?} comes after a later one", it.epoch));
            }
            if self
                .epochs
                .insert(it.epoch, writer)
                .is_some_and(|old| old != writer)
            {
                return broken(I2, format!("epoch {:?} has two owners", it.epoch));
            }
            self.writer = Some((writer, it.epoch));
            return Ok(());
        }
        match self.writer {
            Some((owner, epoch)) if owner != writer => broken(
                I2,
                format!(
                    "{writer:?} wrote {} in epoch {epoch:?} of {owner:?}",
                    record.seq
                ),
            ),
            _ => Ok(()),
        }
    }

    /// I3: no tool starts twice, and none before everyone who must agree has agreed.
    fn i3_no_silent_run(&self, record: &Record) -> Check {
        const I3: &str = "I3 no silent run";
        let RecordBody::Event(event) = &record.body else {
            return Ok(());
        };
        let Event::ToolStarted(it) = &**event else {
            return Ok(());
        };
        match self.items.get(&it.item) {
            Some(item) if item.started => broken(I3, format!("{} is started again", it.item)),
            Some(item) if item.asks && !item.allowed => {
                broken(I3, format!("{} is started without a yes", it.item))
            }
            Some(item) if item.tool && item.open => Ok(()),
            _ => broken(I3, format!("{} is started and is no open tool", it.item)),
        }
    }

    /// I3: what touches the world was stored as started before, and is started once.
    pub fn i3_started_in_the_world(&self, item: &ItemId, times: u32) -> Check {
        const I3: &str = "I3 no silent run";
        if times > 1 {
            return broken(I3, format!("{item} was run {times} times"));
        }
        if !self.items.get(item).is_some_and(|item| item.started) {
            return broken(I3, format!("{item} runs and that it started is not stored"));
        }
        Ok(())
    }

    /// I4: a request is withdrawn only together with the end of its item.
    fn i4_withdrawn_with_their_items(&self, rows: &[Rc<LogRow>]) -> Check {
        requests::withdrawn_with_their_items(self, rows)
    }

    /// I6: what is told is stored, byte for byte, and told as the wire's bridge says.
    pub fn i6_told_is_stored(&mut self, told: &Announcement) -> Check {
        const I6: &str = "I6 told is stored";
        let seq = told.record.seq;
        match self.ever.get(&seq) {
            Some(row) if row.record == told.record => {}
            Some(_) => return broken(I6, format!("{seq} is told otherwise than it is stored")),
            None => return broken(I6, format!("{seq} is told and not stored")),
        }
        if let Some(expected) = self.expected.as_ref().and_then(|all| all.get(&seq))
            && *expected != told.notifications
        {
            return broken(I6, format!("{seq} is told in other words than on replay"));
        }
        self.told.insert(seq, Rc::new(told.record.clone()));
        Ok(())
    }

    /// I6: a number that was told never stands for something else.
    fn i6_numbers_are_not_reused(&self, record: &Record) -> Check {
        match self.told.get(&record.seq) {
            Some(told) if **told != *record => broken(
                "I6 numbers are not reused",
                format!("{} was told and is stored with other content", record.seq),
            ),
            _ => Ok(()),
        }
    }

    /// I6: an append lies in what was reserved before it, or else the next owner could not know which
    /// numbers may have been told.
    fn i6_numbers_are_reserved(&self, rows: &[Rc<LogRow>]) -> Check {
        let begins = rows.first().is_some_and(|row| match &row.record.body {
            RecordBody::Event(event) => {
                matches!(**event, Event::Owned(_) | Event::ThreadStarted(_))
            }
            RecordBody::Delta(_) => false,
        });
        let beyond = rows
            .last()
            .filter(|row| row.record.seq > self.fold.reserved());
        match beyond {
            Some(row) if !begins => broken(
                "I6 numbers are reserved",
                format!("{} was not reserved before", row.record.seq),
            ),
            _ => Ok(()),
        }
    }

    /// I7: the log is what was acknowledged, in order, with nothing between.
    fn i7_prefix(&self, after: Seq, rows: &[Rc<LogRow>]) -> Check {
        const I7: &str = "I7 prefix";
        let mut newest = self.ever.keys().next_back().copied().unwrap_or(Seq::ZERO);
        if newest != after {
            return broken(
                I7,
                format!("appended after {after}, but the newest is {newest}"),
            );
        }
        for row in rows {
            if row.record.seq <= newest {
                return broken(I7, format!("{} comes after {newest}", row.record.seq));
            }
            newest = row.record.seq;
        }
        Ok(())
    }

    /// I8: what a list shows can be made from the records alone, and is the same.
    fn i8_projections_are_derived(&self, record: &Record) -> Check {
        if self.summary != Summary::of(&self.fold) {
            return broken(
                "I8 projections",
                format!("the list differs after {}", record.seq),
            );
        }
        Ok(())
    }

    /// I8: however a thread is read from its log, it is the same thread.
    pub fn i8_opens_alike(&self, log: &Log) -> Check {
        const I8: &str = "I8 base and tail make the whole";
        if log.fold(log.head) != self.fold {
            return broken(I8, "the records that are left fold to another thread");
        }
        if log.open(log.head).0 != self.fold {
            return broken(I8, "base and tail fold to another thread");
        }
        Ok(())
    }
}

/// The first text of a user's message.
pub fn text_of(body: &ItemBody) -> Option<String> {
    let ItemBody::UserMessage(message) = body else {
        return None;
    };
    first_text(&message.input)
}

/// The first text of a user's message that was not said here.
fn said(item: &InjectedItem) -> Option<String> {
    match item {
        InjectedItem::User { input } => first_text(input),
        _ => None,
    }
}

fn first_text(input: &[Input]) -> Option<String> {
    input.iter().find_map(|input| match input {
        Input::Text { text, .. } => Some(text.clone()),
        _ => None,
    })
}
