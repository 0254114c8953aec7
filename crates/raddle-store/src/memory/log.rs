//! One thread in memory.

use std::collections::BTreeMap;

use raddle_core::ports::{ItemEntry, Summary, TurnEntry};
use raddle_core::{Base, Event, ItemId, Record, RecordBody, Seq, TurnId};

use crate::records::{item_of, says_deleted};
use crate::reverted_ranges::RevertedRanges;
use crate::text::searchable;

/// One thread.
#[derive(Debug, Default)]
pub(super) struct ThreadLog {
    pub(super) head: Seq,
    /// The newest record that is no delta.
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

    /// Whether its newest record says that it was deleted.
    pub(super) fn is_deleted(&self) -> bool {
        let mut newest = self.records.values().rev();
        let said = newest.find_map(|record| match &record.body {
            RecordBody::Event(event) => says_deleted(event),
            RecordBody::Delta(_) => Some(false),
        });
        said.unwrap_or_default()
    }

    pub(super) fn items(&self, turn: Option<&TurnId>) -> Vec<ItemEntry> {
        let records = self.records.values();
        let items = records.filter_map(|record| {
            let RecordBody::Event(event) = &record.body else {
                return None;
            };
            let (of, item) = item_of(event)?;
            let counts = turn.is_none_or(|turn| turn == of) && !self.reverted.holds(record.seq);
            counts.then(|| ItemEntry {
                turn: of.clone(),
                seq: record.seq,
                item: item.clone(),
            })
        });
        items.collect()
    }

    /// Whether something in it holds a text, which is in lower case.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.records.values().any(|record| match &record.body {
            RecordBody::Event(event) => {
                searchable(event).is_some_and(|it| it.to_lowercase().contains(text))
            }
            RecordBody::Delta(_) => false,
        })
    }
}

/// About how much a record weighs on a page of records.
pub(super) fn weight(record: &Record) -> usize {
    serde_json::to_vec(record).map_or(0, |bytes| bytes.len())
}
