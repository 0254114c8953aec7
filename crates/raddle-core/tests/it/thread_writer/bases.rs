//! Snapshots of a thread: often enough that it opens fast, and no more often.

use raddle_core::*;

use super::idle_thread;
use crate::fixtures;
use crate::simulated::{SimulatedThread, fold, node};

#[test]
fn snapshots_are_saved_regularly() {
    let mut sim = idle_thread();
    for number in 0..2_500 {
        sim.send_command(crate::fixtures::rename(Some(number.to_string())));
        sim.settle();
    }
    assert_eq!(sim.bases.len(), 2);
    let base = sim.bases.pop().expect("a base");
    let upto = base.thread.head();
    assert_eq!(
        base.thread,
        fold(sim.journal.iter().filter(|it| it.seq <= upto))
    );
}

/// Passes the thread to another owner, which folds it from its newest base.
fn pass_on(sim: &mut SimulatedThread, epoch: u64) {
    let mut thread = Thread::new();
    let mut tail = Tail::default();
    let newest = sim.bases.last().map_or(Seq::ZERO, |it| it.thread.head());
    for record in &sim.journal {
        thread.apply(record);
        if record.seq > newest {
            tail.count(record);
        }
    }
    let head = thread.head();
    sim.owner = ThreadWriter::open(thread, head, node(epoch), sim.now).since_base(tail);
    sim.settle();
}

#[test]
fn short_epochs_still_save_a_base() {
    let mut sim = idle_thread();
    sim.bases.clear();
    for epoch in 2..400 {
        pass_on(&mut sim, epoch);
        sim.send_command(fixtures::rename(Some(epoch.to_string())));
        sim.settle();
        sim.send_command(Command::Release);
        sim.settle();
    }
    assert_eq!(sim.bases.len(), 1, "of about 1200 events");
    let upto = sim.bases[0].thread.head();
    let events = sim.journal.iter().filter(|record| record.seq <= upto);
    assert_eq!(events.count(), 1000);
}

#[test]
fn much_text_in_short_epochs_still_saves_a_base() {
    let mut sim = idle_thread();
    sim.bases.clear();
    for epoch in 2..7 {
        pass_on(&mut sim, epoch);
        sim.send_command(fixtures::rename(Some("x".repeat(1 << 20))));
        sim.settle();
        sim.send_command(fixtures::rename(None));
        sim.send_command(Command::Release);
        sim.settle();
    }
    assert_eq!(sim.bases.len(), 1, "of 5 MiB");
}

#[test]
fn a_large_message_counts_in_full() {
    let mut sim = idle_thread();
    sim.bases.clear();
    // Five messages of 1 MiB each exceed the most bytes since a base.
    for number in 0..5 {
        let turn = format!("t{number}");
        sim.send_command(fixtures::start_turn(
            &turn,
            TurnKind::Work,
            Some(&"x".repeat(1 << 20)),
        ));
        sim.settle();
        sim.run_line("done");
    }
    assert_eq!(sim.bases.len(), 1);
}
