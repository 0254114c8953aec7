//! The checker accepts a good history, and finds each planted fault of a store.

use std::collections::BTreeMap;

use super::{AllowedLosses, BrokenPromise, check};
use crate::history::{AppendOutcome, Durability, HistoryEntry, HistoryLine, NoteKind, RecordNote};

use AppendOutcome::{Conflict, Failed, Stored, Unknown};
use BrokenPromise::*;
use Durability::{Power, Process};

/// A history of one thread, and its final log.
#[derive(Clone, Default)]
struct Script {
    lines: Vec<HistoryLine>,
    log: Vec<RecordNote>,
    ops: u64,
}

fn note(seq: u64, kind: NoteKind) -> RecordNote {
    let salt = match kind {
        NoteKind::Barrier { .. } => 1,
        NoteKind::Delta { .. } => 2,
        _ => 0,
    };
    let hash = seq * 1000 + salt;
    RecordNote { seq, hash, kind }
}

fn event(seq: u64) -> RecordNote {
    note(seq, NoteKind::Event)
}

fn delta(seq: u64) -> RecordNote {
    let item = "i".to_owned();
    note(seq, NoteKind::Delta { item })
}

fn settles(seq: u64) -> RecordNote {
    let item = "i".to_owned();
    note(seq, NoteKind::Settles { item })
}

fn barrier(seq: u64, epoch: u64, found: u64) -> RecordNote {
    note(seq, NoteKind::Barrier { epoch, found })
}

impl Script {
    fn line(&mut self, node: &str, entry: HistoryEntry) {
        let at = self.lines.len() as u64 + 1;
        self.lines.push(HistoryLine {
            at,
            wall: at,
            node: node.to_owned(),
            entry,
        });
    }

    fn intend(&mut self, node: &str, durable: Durability, records: &[RecordNote]) -> u64 {
        self.ops += 1;
        let op = self.ops;
        let records = records.to_vec();
        let entry = HistoryEntry::Append {
            thread: 0,
            life: 1,
            op,
            durable,
            records,
        };
        self.line(node, entry);
        op
    }

    fn append(
        &mut self,
        node: &str,
        durable: Durability,
        outcome: AppendOutcome,
        records: &[RecordNote],
    ) -> u64 {
        let op = self.intend(node, durable, records);
        self.line(node, HistoryEntry::Appended { op, outcome });
        op
    }

    /// An append that is stored.
    fn store(&mut self, node: &str, durable: Durability, records: &[RecordNote]) {
        self.append(node, durable, Stored, records);
        self.log.extend_from_slice(records);
    }

    /// A node takes the thread, and finds what the log has now.
    fn take(&mut self, node: &str) {
        let records = self.log.clone();
        let entry = HistoryEntry::Taken {
            thread: 0,
            life: 1,
            records,
        };
        self.line(node, entry);
    }

    fn remove(&mut self, seq: u64) {
        self.log.retain(|it| it.seq != seq);
    }

    fn broken(&self, losses: AllowedLosses) -> Vec<BrokenPromise> {
        let logs = BTreeMap::from([(0, self.log.clone())]);
        let verdict = check(&self.lines, &logs, losses);
        let mut broken: Vec<BrokenPromise> =
            verdict.violations.iter().map(|it| it.promise).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    fn assert_breaks(&self, promises: &[BrokenPromise]) {
        let mut promises = promises.to_vec();
        promises.sort_unstable();
        assert_eq!(self.broken(AllowedLosses::None), promises);
    }

    fn lost_records(&self) -> u64 {
        let logs = BTreeMap::from([(0, self.log.clone())]);
        let verdict = check(&self.lines, &logs, AllowedLosses::Unsynced);
        verdict.figures.lost_records
    }
}

/// The node `a` writes events and deltas up to 6.
fn first_owner() -> Script {
    let mut script = Script::default();
    script.store("a", Power, &[event(1), barrier(2, 1, 0)]);
    script.store("a", Power, &[event(3)]);
    script.store("a", Process, &[event(4)]);
    script.store("a", Process, &[delta(5)]);
    script.store("a", Process, &[delta(6)]);
    script
}

/// Then `b` takes the thread, whose numbers up to 99 were reserved.
fn two_owners() -> Script {
    let mut script = first_owner();
    script.take("b");
    script.store("b", Power, &[barrier(100, 2, 6)]);
    script.store("b", Power, &[event(101)]);
    script
}

#[test]
fn good_histories_pass() {
    two_owners().assert_breaks(&[]);
    let mut script = two_owners();
    // An unknown outcome may be in the log or not, and a failure may be repeated.
    script.append("b", Power, Failed, &[event(102)]);
    let op = script.append("b", Power, Unknown, &[event(102)]);
    script.log.push(event(102));
    script.line("b", HistoryEntry::Settled { op, stored: true });
    script.append("b", Power, Unknown, &[event(103)]);
    script.assert_breaks(&[]);
    // A killed node has no outcome.
    script.intend("b", Power, &[event(103)]);
    script.log.push(event(103));
    script.assert_breaks(&[]);
}

#[test]
fn settled_deltas_may_be_deleted() {
    let mut script = two_owners();
    script.store("b", Power, &[settles(102)]);
    script.remove(5);
    script.remove(6);
    script.assert_breaks(&[]);
}

#[test]
fn lost_event() {
    let mut script = two_owners();
    script.remove(101);
    script.assert_breaks(&[EventLost]);
    assert_eq!(script.broken(AllowedLosses::Unsynced), [EventLost]);
}

#[test]
fn event_lost_after_an_unknown_outcome_was_settled() {
    let mut script = two_owners();
    let op = script.append("b", Power, Unknown, &[event(102)]);
    script.line("b", HistoryEntry::Settled { op, stored: true });
    script.assert_breaks(&[EventLost]);
}

#[test]
fn doubled_event() {
    let mut script = two_owners();
    script.log.push(event(101));
    script.assert_breaks(&[NumbersFall]);
    let mut script = two_owners();
    // The same content under another number, which no node wrote.
    script.log.push(event(102));
    script.assert_breaks(&[ForeignRecord]);
}

#[test]
fn wrong_order() {
    let mut script = two_owners();
    script.store("b", Power, &[event(103)]);
    script.store("b", Power, &[event(102)]);
    script.assert_breaks(&[NumbersFall]);
}

#[test]
fn failed_append_that_is_stored() {
    for outcome in [Failed, Conflict] {
        let mut script = two_owners();
        script.append("b", Power, outcome, &[event(102)]);
        script.log.push(event(102));
        script.assert_breaks(&[FailedAppendStored]);
    }
    let mut script = two_owners();
    let op = script.append("b", Power, Unknown, &[event(102)]);
    script.line("b", HistoryEntry::Settled { op, stored: false });
    script.log.push(event(102));
    script.assert_breaks(&[FailedAppendStored]);
}

#[test]
fn write_of_a_former_owner_that_is_stored() {
    let mut script = two_owners();
    script.store("a", Power, &[event(102)]);
    script.assert_breaks(&[ForeignRecord, EventLost, FormerOwnerWrite]);
}

#[test]
fn delta_of_a_former_owner_that_is_acknowledged() {
    let mut script = two_owners();
    script.append("a", Process, Stored, &[delta(7)]);
    script.assert_breaks(&[DeltaLost, FormerOwnerWrite]);
    // A primary that was replaced may do so: the number is an expired cursor.
    assert_eq!(script.broken(AllowedLosses::Unsynced), []);
    assert_eq!(script.lost_records(), 1);
}

#[test]
fn late_statement_of_a_former_owner() {
    let mut script = first_owner();
    script.append("a", Power, Unknown, &[event(7)]);
    script.take("b");
    script.store("b", Power, &[barrier(100, 2, 6)]);
    script.log.insert(script.log.len() - 1, event(7));
    script.assert_breaks(&[RecordAppeared]);
}

#[test]
fn epoch_that_two_nodes_write() {
    let mut script = two_owners();
    script.store("c", Power, &[barrier(102, 2, 101)]);
    script.assert_breaks(&[EpochsFall]);
}

#[test]
fn lost_deltas() {
    let mut script = first_owner();
    script.append("a", Process, Stored, &[delta(7)]);
    script.take("b");
    script.store("b", Power, &[barrier(100, 2, 6)]);
    script.assert_breaks(&[DeltaLost]);
    assert_eq!(script.broken(AllowedLosses::Unsynced), []);
    assert_eq!(script.lost_records(), 1);
}

#[test]
fn deltas_lost_before_others_of_the_same_owner() {
    let mut script = first_owner();
    script.remove(5);
    script.take("b");
    script.store("b", Power, &[barrier(100, 2, 6)]);
    assert_eq!(script.broken(AllowedLosses::Unsynced), [DeltaLost]);
}

#[test]
fn lost_deltas_without_expired_numbers() {
    // No barrier follows.
    let mut script = first_owner();
    script.append("a", Process, Stored, &[delta(7)]);
    assert_eq!(script.broken(AllowedLosses::Unsynced), [LossNotExpired]);
    // The barrier has a number before the lost one.
    let mut script = first_owner();
    script.append("a", Process, Stored, &[delta(7)]);
    script.take("b");
    script.store("b", Power, &[barrier(7, 2, 6)]);
    let broken = script.broken(AllowedLosses::Unsynced);
    assert!(broken.contains(&LossNotExpired), "{broken:?}");
}

#[test]
fn number_with_two_contents() {
    let mut script = first_owner();
    script.append("a", Process, Stored, &[delta(7)]);
    script.take("b");
    script.store("b", Power, &[barrier(8, 2, 6)]);
    let mut other = event(7);
    other.hash += 1;
    let last = script.log.pop();
    script.append("b", Power, Stored, std::slice::from_ref(&other));
    script.log.push(other);
    script.log.extend(last);
    let broken = script.broken(AllowedLosses::Unsynced);
    assert!(broken.contains(&NumberReused), "{broken:?}");
}

#[test]
fn record_that_was_found_and_vanished() {
    let mut script = first_owner();
    script.intend("a", Power, &[event(7)]);
    script.log.push(event(7));
    script.take("b");
    script.store("b", Power, &[barrier(100, 2, 7)]);
    script.assert_breaks(&[]);
    script.remove(7);
    script.assert_breaks(&[RecordVanished]);
}

#[test]
fn turn_that_does_not_end_once() {
    let turn = || "t".to_owned();
    let start = note(102, NoteKind::TurnStarted { turn: turn() });
    let end = |seq| note(seq, NoteKind::TurnEnded { turn: turn() });
    let mut script = two_owners();
    script.store("b", Power, &[start]);
    script.assert_breaks(&[TurnEnds]);
    script.store("b", Power, &[end(103)]);
    script.assert_breaks(&[]);
    script.store("b", Power, &[end(104)]);
    script.assert_breaks(&[TurnEnds]);
}
