//! The log after a change of the primary, and text that was acknowledged and lost.

use std::rc::Rc;

use raddle_core::{Event, RecordBody, Seq};

use super::{Check, Oracle, WriterId, broken};
use crate::fleet::DeltaRow;
use crate::store::{Log, LogRow};

impl Oracle {
    /// Newest stored record.
    pub fn newest(&self) -> Seq {
        let newest = self.stored_rows.keys().next_back();
        newest.copied().unwrap_or(Seq::ZERO)
    }

    /// Checks that the log after a change of the primary contains every acknowledged event. Deltas
    /// may be missing: their node sends them again, or the next owner's barrier makes them lost.
    pub fn i7_survives_fail_over(&mut self, log: &Log) -> Check {
        let after = self.stored_rows.range(log.head.next()..);
        let missing: Vec<_> = after.map(|(seq, row)| (*seq, row.clone())).collect();
        let lost = self.lost.clone();
        if !missing.is_empty() {
            self.i7_survives_power(log)?;
            self.lost = lost;
            self.missing.extend(missing);
        }
        Ok(())
    }

    /// Notes a delta that a primary acknowledged and that no reader of the present one finds.
    pub fn acknowledged_in_vain(&mut self, writer: WriterId, row: &Rc<LogRow>) {
        let seq = row.record.seq;
        if self.stored_rows.contains_key(&seq) {
            return;
        }
        if self.writer.is_some_and(|(owner, _)| owner != writer) {
            self.lost.insert(seq);
        }
        self.missing.insert(seq, row.clone());
    }

    /// Follows records that are stored: those that were missing are back, and a new owner's barrier
    /// makes the others lost.
    pub(super) fn follow_missing(&mut self, rows: &[Rc<LogRow>]) {
        for row in rows {
            self.missing.remove(&row.record.seq);
            self.lost.remove(&row.record.seq);
            let is_barrier = match &row.record.body {
                RecordBody::Event(event) => matches!(**event, Event::Owned(_)),
                RecordBody::Delta(_) => false,
            };
            if is_barrier {
                self.lost.extend(self.missing.keys());
            }
        }
    }

    /// Whether a record was acknowledged as a delta, and is not stored now.
    pub(super) fn is_missing(&self, seq: Seq) -> Option<&LogRow> {
        let row = self.missing.get(&seq)?;
        matches!(row.record.body, RecordBody::Delta(_)).then_some(row)
    }

    /// I7: an event follows all text that readers find before it.
    pub fn i7_gathered_is_whole(&self, head: Seq, gathered: &[DeltaRow]) -> Check {
        let mut visible = self.stored_rows.range(head.next()..);
        let is_left_out = |seq: &Seq| gathered.iter().all(|it| it.row.record.seq != *seq);
        match visible.find(|(seq, _)| is_left_out(seq)) {
            Some((seq, _)) => broken(
                "I7 prefix",
                format!("{seq} was stored, and an append after {head} leaves it out"),
            ),
            None => Ok(()),
        }
    }
}
