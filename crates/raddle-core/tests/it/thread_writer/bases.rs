//! Snapshots of a thread: often enough that it opens fast, and no more often.

use raddle_core::*;

use super::idle_life;
use crate::fixtures;
use crate::simulated::{SimulatedThread, fold, node};

#[test]
fn a_snapshot_is_kept_now_and_then() {
    let mut life = idle_life();
    for number in 0..2_500 {
        life.order(crate::fixtures::rename(Some(number.to_string())));
        life.settle();
    }
    assert_eq!(life.bases.len(), 2);
    let base = life.bases.pop().expect("a base");
    let upto = base.thread.head();
    assert_eq!(
        base.thread,
        fold(life.journal.iter().filter(|it| it.seq <= upto))
    );
}

/// The thread passes to another owner, who folds it from its newest base.
fn pass_on(life: &mut SimulatedThread, epoch: u64) {
    let mut thread = Thread::new();
    let mut tail = Tail::default();
    let newest = life.bases.last().map_or(Seq::ZERO, |it| it.thread.head());
    for record in &life.journal {
        thread.apply(record);
        if record.seq > newest {
            tail.count(record);
        }
    }
    let found = thread.head();
    life.owner = ThreadWriter::open(thread, found, node(epoch), life.now).since_base(tail);
    life.settle();
}

#[test]
fn short_reigns_come_to_a_base_too() {
    let mut life = idle_life();
    life.bases.clear();
    for epoch in 2..400 {
        pass_on(&mut life, epoch);
        life.order(fixtures::rename(Some(epoch.to_string())));
        life.settle();
        life.order(Command::Release);
        life.settle();
    }
    assert_eq!(life.bases.len(), 1, "of about 1200 events");
    let upto = life.bases[0].thread.head();
    let events = life.journal.iter().filter(|record| record.seq <= upto);
    assert_eq!(events.count(), 1000);
}

#[test]
fn much_text_under_short_reigns_comes_to_a_base_too() {
    let mut life = idle_life();
    life.bases.clear();
    for epoch in 2..7 {
        pass_on(&mut life, epoch);
        life.order(fixtures::rename(Some("x".repeat(1 << 20))));
        life.settle();
        life.order(fixtures::rename(None));
        life.order(Command::Release);
        life.settle();
    }
    assert_eq!(life.bases.len(), 1, "of 5 MiB");
}

#[test]
fn a_large_message_counts_in_full() {
    let mut life = idle_life();
    life.bases.clear();
    // Five messages of 1 MiB each are more than a base may lie behind.
    for number in 0..5 {
        let turn = format!("t{number}");
        life.order(fixtures::start_turn(
            &turn,
            TurnKind::Work,
            Some(&"x".repeat(1 << 20)),
        ));
        life.settle();
        life.say("done");
    }
    assert_eq!(life.bases.len(), 1);
}
