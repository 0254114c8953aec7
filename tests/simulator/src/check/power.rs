//! The log after loss of power.

use std::collections::BTreeMap;

use raddle_core::{Class, Event, RecordBody};

use super::{Check, Oracle, broken};
use crate::store::Log;

impl Oracle {
    /// Checks that the log after loss of power contains all that had to survive it.
    pub fn i7_survives_power(&mut self, log: &Log) -> Check {
        const I7: &str = "I7 survives power";
        let old = std::mem::take(&mut self.stored_rows);
        let before = std::mem::replace(self, Self::new(self.expected.is_some()));
        self.announced = before.announced;
        self.lost = before.lost;
        self.missing = before.missing;
        self.known_turns = before.known_turns;
        self.writer = before.writer;
        self.epochs = before.epochs;
        self.expected = before.expected;
        let mut settled = BTreeMap::new();
        for row in &log.rows {
            settled.insert(row.record.seq, ());
            self.replay_row(row)?;
        }
        for (seq, row) in old.iter().filter(|(seq, _)| **seq > log.head) {
            if row.record.body.class() == Class::Power && self.announced.contains_key(seq) {
                return broken(
                    I7,
                    format!("{seq} was announced, must survive, and is lost"),
                );
            }
            self.lost.insert(*seq);
        }
        for (seq, row) in old.range(..=log.head) {
            // Missing rows below the head are deltas of settled items.
            if !settled.contains_key(seq) {
                if matches!(row.record.body, RecordBody::Event(_)) {
                    return broken(I7, format!("{seq} is gone from the middle"));
                }
                self.stored_rows.insert(*seq, row.clone());
            }
        }
        // The newest writer in the remaining log is the one that counts.
        self.writer = None;
        for row in self.stored_rows.values() {
            if let RecordBody::Event(event) = &row.record.body
                && let Event::Owned(it) = &**event
            {
                self.writer = self.epochs.get(&it.epoch).map(|writer| (*writer, it.epoch));
            }
        }
        let turns = &self.turns;
        let missing = self
            .known_turns
            .iter()
            .find(|known| turns.iter().all(|(turn, _)| turn != *known));
        match missing {
            Some(turn) => broken(I7, format!("a client holds turn {turn}, which is gone")),
            None => Ok(()),
        }
    }
}
