//! The promises, each as a function that finds its first violation.
//!
//! The oracle of a thread knows everything that was ever stored and not lost, everything that was
//! announced, and what follows from both by rules of its own. It relies on the core's fold only
//! where it compares it with another.

pub mod context;
pub mod ending;
mod fail_over;
mod hunks;
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
    RecordBody, RequestNumber, Resolution, Seq, Span, Thread, TurnId, notifications_of,
    notifications_on_replay,
};

use raddle_protocol::Notification;

use self::hunks::DecidedHunks;
use self::rulings::Rulings;
use crate::client_view::ClientView;
use crate::store::{Log, LogRow};

/// A broken promise, found by a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// Name of the promise.
    pub promise: &'static str,
    /// Description of the violation.
    pub how: String,
}

/// Result of a check.
pub type Check = Result<(), BrokenPromise>;

/// Returns a broken promise.
pub fn broken(promise: &'static str, how: impl Into<String>) -> Check {
    Err(BrokenPromise {
        promise,
        how: how.into(),
    })
}

/// An opening of a thread: the node, and the number of its opening.
pub type WriterId = (usize, u64);

/// Knowledge about one thread from outside.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Every row that was stored and not lost, deltas of settled items included.
    pub stored_rows: BTreeMap<Seq, Rc<LogRow>>,
    /// Fold of these rows.
    pub fold: Thread,
    /// View of a client that received everything and never disconnected.
    pub view: ClientView,
    summary: Option<Summary>,
    /// Newest writer and its epoch.
    pub writer: Option<(WriterId, Epoch)>,
    epochs: BTreeMap<Epoch, WriterId>,
    /// Announced records, also those that were lost later.
    pub announced: BTreeMap<Seq, Rc<Record>>,
    /// Numbers that were stored and lost.
    pub lost: BTreeSet<Seq>,
    /// Deltas that were acknowledged, and that no reader finds at present.
    missing: BTreeMap<Seq, Rc<LogRow>>,
    /// Expected notifications of records, for runs that compare them.
    expected: Option<BTreeMap<Seq, Vec<Notification>>>,
    /// Turns and their first records.
    pub turns: Vec<(TurnId, Seq)>,
    open_turn: Option<TurnId>,
    /// Ranges of records that were reverted.
    cuts: Vec<Span>,
    items: BTreeMap<ItemId, ItemFacts>,
    requests: BTreeMap<RequestNumber, ItemId>,
    resolved: BTreeMap<RequestNumber, Resolution>,
    rulings: Rulings,
    hunks: DecidedHunks,
    /// Texts of users, each sent once.
    inputs: BTreeSet<String>,
    /// Texts that the next model call must contain.
    expected_inputs: Vec<String>,
    /// The same before each turn.
    inputs_before: BTreeMap<Seq, Vec<String>>,
    /// Number of these texts that the summary under way will replace.
    compacting: usize,
    /// Whether the running model call has summarised the history.
    compacted: bool,
    /// Whether a model call is running.
    answering: bool,
    /// End of the newest call in the turn, until the next.
    ended: Option<ModelEnd>,
    /// Turns that a client was notified of.
    pub known_turns: BTreeSet<TurnId>,
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
    /// Creates the oracle before the first record.
    pub fn new(compares_notifications: bool) -> Self {
        Self {
            expected: compares_notifications.then(BTreeMap::new),
            ..Self::default()
        }
    }

    /// Checks rows that were stored after `after`.
    pub fn stored(&mut self, writer: WriterId, after: Seq, rows: &[Rc<LogRow>]) -> Check {
        self.i7_prefix(after, rows)?;
        self.i6_numbers_are_reserved(rows)?;
        for row in rows {
            self.i2_one_writer_per_epoch(writer, &row.record)?;
            self.i6_numbers_are_not_reused(&row.record)?;
            self.check_record(&row.record)?;
            self.apply_row(row);
            self.i8_projections_are_derived(&row.record)?;
            let notifications = notifications_of(&self.fold, &row.record);
            rejoin::i1_makes_sense(self.view.apply_all(&notifications))?;
            if let Some(expected) = &mut self.expected {
                expected.insert(row.record.seq, notifications);
            }
        }
        self.follow_missing(rows);
        self.i4_withdrawn_with_their_items(rows)?;
        context::well_formed(self, rows)
    }

    /// Adds rows that were copied from another thread's log, unchecked: they were checked there.
    pub fn add_copied(&mut self, rows: &[Rc<LogRow>]) -> Check {
        rows.iter().try_for_each(|row| self.replay_row(row))
    }

    /// Adds a remaining row of a log, as a client receives it that was absent when it was
    /// announced.
    fn replay_row(&mut self, row: &Rc<LogRow>) -> Check {
        self.hunks.note(&self.fold, &self.requests, &row.record);
        let notifications = notifications_on_replay(&mut self.fold, &row.record);
        self.add_row(row);
        rejoin::i1_makes_sense(self.view.apply_all(&notifications))
    }

    fn apply_row(&mut self, row: &Rc<LogRow>) {
        self.hunks.note(&self.fold, &self.requests, &row.record);
        self.fold.apply(&row.record);
        self.add_row(row);
    }

    fn add_row(&mut self, row: &Rc<LogRow>) {
        self.stored_rows.insert(row.record.seq, row.clone());
        Summary::fold(&mut self.summary, &row.record);
        self.note(&row.record);
    }

    fn check_record(&self, record: &Record) -> Check {
        ending::i5_ending(self, record)?;
        requests::i4_requests(self, record)?;
        self.rulings.check(record)?;
        if let RecordBody::Event(event) = &record.body {
            self.reverts_only_what_counts(event)?;
            if let Event::ItemCompleted(it) = &**event {
                self.hunks.check(it)?;
            }
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
                self.inputs_before
                    .insert(record.seq, self.expected_inputs.clone());
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
                    self.expected_inputs.push(text.clone());
                    self.inputs.insert(text);
                }
            }
            Event::ItemsInjected(it) => {
                let texts = it.items.iter().filter_map(injected_text);
                self.expected_inputs.extend(texts);
            }
            Event::ModelCalled(it) => {
                self.answering = true;
                self.ended = None;
                if it.purpose == Purpose::Compact {
                    self.compacting = self.expected_inputs.len();
                }
            }
            Event::ModelEnded(it) => {
                self.answering = false;
                self.ended = Some(it.end.clone());
                self.compacted = false;
            }
            Event::Compacted(_) => {
                self.compacted = true;
                self.expected_inputs.drain(..self.compacting);
            }
            Event::Reverted(it) => {
                self.cuts.push(Span {
                    from: it.at,
                    until: Some(record.seq),
                });
                self.expected_inputs = self.inputs_before.get(&it.at).cloned().unwrap_or_default();
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
                if let Some(item) = item.filter(|_| requests::is_approval(&it.resolution)) {
                    item.allowed = true;
                }
                self.resolved.insert(it.request, it.resolution.clone());
            }
            _ => {}
        }
    }

    /// I2: epochs never fall, each has one owner, and no other node writes in it.
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

    /// I3: no tool starts twice, and none before every required approval.
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
                broken(I3, format!("{} is started without approval", it.item))
            }
            Some(item) if item.tool && item.open => Ok(()),
            _ => broken(I3, format!("{} is started and is no open tool", it.item)),
        }
    }

    /// I3: a tool with effects was stored as started before, and is started once.
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

    /// I6: what is announced is stored, byte for byte, and announced as `notifications_of` says.
    pub fn i6_sent_is_stored(&mut self, announcement: &Announcement) -> Check {
        const I6: &str = "I6 sent is stored";
        let seq = announcement.record.seq;
        match self.stored_rows.get(&seq) {
            Some(row) if row.record == announcement.record => {}
            Some(_) => {
                return broken(
                    I6,
                    format!("{seq} is announced otherwise than it is stored"),
                );
            }
            None if self.is_missing(seq).map(|it| &it.record) == Some(&announcement.record) => {}
            None => return broken(I6, format!("{seq} is announced and not stored")),
        }
        if let Some(expected) = self.expected.as_ref().and_then(|all| all.get(&seq))
            && *expected != announcement.notifications
        {
            return broken(I6, format!("{seq} is announced otherwise than on replay"));
        }
        self.announced
            .insert(seq, Rc::new(announcement.record.clone()));
        Ok(())
    }

    /// I6: an announced number never gets other content.
    fn i6_numbers_are_not_reused(&self, record: &Record) -> Check {
        match self.announced.get(&record.seq) {
            Some(record_announced) if **record_announced != *record => broken(
                "I6 numbers are not reused",
                format!(
                    "{} was announced and is stored with other content",
                    record.seq
                ),
            ),
            _ => Ok(()),
        }
    }

    /// I6: an append lies in an earlier reserve, or else the next owner could not know which
    /// numbers may have been announced.
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

    /// I7: the log contains what was acknowledged, in order, with nothing between.
    fn i7_prefix(&self, after: Seq, rows: &[Rc<LogRow>]) -> Check {
        const I7: &str = "I7 prefix";
        let mut newest = self
            .stored_rows
            .keys()
            .next_back()
            .copied()
            .unwrap_or(Seq::ZERO);
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

    /// I8: a summary derived from the records alone is the same.
    fn i8_projections_are_derived(&self, record: &Record) -> Check {
        if self.summary != Summary::of(&self.fold) {
            return broken(
                "I8 projections",
                format!("the list differs after {}", record.seq),
            );
        }
        Ok(())
    }

    /// I8: a thread is the same however it is read from its log.
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

/// Returns the first text of a user's message.
pub fn text_of(body: &ItemBody) -> Option<String> {
    let ItemBody::UserMessage(message) = body else {
        return None;
    };
    first_text(&message.input)
}

/// Returns the first text of a user's message in injected history.
fn injected_text(item: &InjectedItem) -> Option<String> {
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
