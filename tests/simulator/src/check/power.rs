//! What is left when the power went.

use std::collections::BTreeMap;

use raddle_core::{Class, Event, RecordBody};

use super::{Check, Oracle, broken};
use crate::store::Log;

impl Oracle {
    /// The power went: what is left must hold all that had to survive it.
    pub fn i7_survives_power(&mut self, log: &Log) -> Check {
        const I7: &str = "I7 survives power";
        let old = std::mem::take(&mut self.ever);
        let before = std::mem::replace(self, Self::new(self.expected.is_some()));
        self.told = before.told;
        self.lost = before.lost;
        self.held = before.held;
        self.writer = before.writer;
        self.epochs = before.epochs;
        self.expected = before.expected;
        let mut settled = BTreeMap::new();
        for row in &log.rows {
            settled.insert(row.record.seq, ());
            self.take_again(row)?;
        }
        for (seq, row) in old.iter().filter(|(seq, _)| **seq > log.head) {
            if row.record.body.class() == Class::Power && self.told.contains_key(seq) {
                return broken(I7, format!("{seq} was told, must survive, and is gone"));
            }
            self.lost.insert(*seq);
        }
        for (seq, row) in old.range(..=log.head) {
            // What is left out below the head are deltas whose items are settled.
            if !settled.contains_key(seq) {
                if matches!(row.record.body, RecordBody::Event(_)) {
                    return broken(I7, format!("{seq} is gone from the middle"));
                }
                self.ever.insert(*seq, row.clone());
            }
        }
        // Whoever wrote last among what is left is the one that counts.
        self.writer = None;
        for row in self.ever.values() {
            if let RecordBody::Event(event) = &row.record.body
                && let Event::Owned(it) = &**event
            {
                self.writer = self.epochs.get(&it.epoch).map(|writer| (*writer, it.epoch));
            }
        }
        let turns = &self.turns;
        let gone = self
            .held
            .iter()
            .find(|held| turns.iter().all(|(turn, _)| turn != *held));
        match gone {
            Some(turn) => broken(I7, format!("a client holds turn {turn}, which is gone")),
            None => Ok(()),
        }
    }
}
