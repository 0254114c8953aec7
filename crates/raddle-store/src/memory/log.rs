//! An in-memory thread.

use std::collections::BTreeMap;

use raddle_core::ports::{ItemEntry, Summary, TurnEntry};
use raddle_core::{Base, Event, ItemId, Record, RecordBody, Seq, TurnId};

use crate::records::{is_deletion, item_of};
use crate::reverted_ranges::RevertedRanges;
use crate::text::searchable;

/// Records of one thread, and data derived from them.
#[derive(Debug, Default)]
pub(super) struct ThreadLog {
    pub(super) head: Seq,
    /// Newest record that is not a delta.
    pub(super) event_head: Seq,
    pub(super) records: BTreeMap<Seq, Record>,
    pub(super) bases: BTreeMap<Seq, Base>,
    pub(super) summary: Option<Summary>,
    pub(super) turns: BTreeMap<Seq, TurnEntry>,
    pub(super) reverted: RevertedRanges,
}

impl ThreadLog {
    pub(super) fn append(&mut self, record: &Record) {
        self.head = record.seq;
        Summary::fold(&mut self.summary, record);
        if let RecordBody::Event(event) = &record.body {
            self.event_head = record.seq;
            if let Some(item) = event.settles() {
                self.forget_deltas(item);
            }
            self.turn(event, record);
        }
        self.records.insert(record.seq, record.clone());
    }

    fn forget_deltas(&mut self, item: &ItemId) {
        self.records.retain(
            |_, record| !matches!(&record.body, RecordBody::Delta(delta) if delta.item == *item),
        );
    }

    fn turn(&mut self, event: &Event, record: &Record) {
        match event {
            Event::TurnStarted(it) => {
                let entry = TurnEntry {
                    turn: it.turn.clone(),
                    root: it.root.clone(),
                    from: record.seq,
                    started_at: record.at,
                    ended: None,
                };
                self.turns.insert(record.seq, entry);
            }
            Event::TurnEnded(it) => {
                let last = self.turns.values_mut().next_back();
                if let Some(turn) = last.filter(|turn| turn.turn == it.turn) {
                    turn.ended = Some((it.end.clone(), record.at));
                }
            }
            Event::Reverted(it) => self.reverted.revert(it.at, record.seq),
            _ => {}
        }
    }

    /// Whether its newest record marks it as deleted.
    pub(super) fn is_deleted(&self) -> bool {
        let mut newest = self.records.values().rev();
        let deleted = newest.find_map(|record| match &record.body {
            RecordBody::Event(event) => is_deletion(event),
            RecordBody::Delta(_) => Some(false),
        });
        deleted.unwrap_or_default()
    }

    pub(super) fn items(&self, turn: Option<&TurnId>) -> Vec<ItemEntry> {
        let records = self.records.values();
        let items = records.filter_map(|record| {
            let RecordBody::Event(event) = &record.body else {
                return None;
            };
            let (item_turn, item) = item_of(event)?;
            let included =
                turn.is_none_or(|turn| turn == item_turn) && !self.reverted.holds(record.seq);
            included.then(|| ItemEntry {
                turn: item_turn.clone(),
                seq: record.seq,
                item: item.clone(),
            })
        });
        items.collect()
    }

    /// Whether any record contains a text, which is in lower case.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.records.values().any(|record| match &record.body {
            RecordBody::Event(event) => {
                searchable(event).is_some_and(|it| it.to_lowercase().contains(text))
            }
            RecordBody::Delta(_) => false,
        })
    }
}

/// Returns the approximate weight of a record on a page.
pub(super) fn weight(record: &Record) -> usize {
    serde_json::to_vec(record).map_or(0, |bytes| bytes.len())
}
