//! Going back, where rule files cannot reach.

use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

fn revert(life: &SimulatedThread, at: Seq, turns: u64) -> Result<Vec<RecordBody>, Refusal> {
    let thread = life.owner.thread();
    let command = fixtures::command(&format!("revert t {at} {turns}"), thread, life.now);
    thread.decide(command, life.now).map(|(bodies, _)| bodies)
}

/// A turn that is taken back at once.
fn in_vain(life: &mut SimulatedThread) {
    let (at, turns) = (
        life.owner.thread().head().next(),
        life.owner.thread().turns(),
    );
    life.say(r#"start t "no" · done"#);
    life.say(&format!("revert t {at} {turns}"));
    assert_eq!(life.owner.thread().turns(), turns);
}

fn condense(life: &mut SimulatedThread) {
    life.say(r#"compact c · condensed i "so far" · done"#);
}

/// What counts is made up of so many stretches, until it is condensed to one.
#[test]
fn a_thread_goes_back_so_often_before_it_is_condensed() {
    let mut life = SimulatedThread::new();
    for _ in 0..255 {
        in_vain(&mut life);
    }
    let head = life.owner.thread().head();
    life.say(r#"start t "no" · done"#);
    assert_eq!(revert(&life, head.next(), 0), Err(Refusal::TooManyReverts));
    condense(&mut life);
    in_vain(&mut life);
}

/// What was taken back long ago is forgotten, and then nobody goes back to where it was.
#[test]
fn so_many_stretches_that_were_taken_back_are_remembered() {
    let mut life = SimulatedThread::new();
    let first = life.owner.thread().head().next();
    life.say(r#"start t0 "hi" · done"#);
    in_vain(&mut life);
    let first_cut_until = life.owner.thread().head();
    for number in 2..=257 {
        assert!(revert(&life, first, 0).is_ok(), "before {number}");
        if number % 100 == 0 {
            condense(&mut life);
        }
        in_vain(&mut life);
    }
    assert_eq!(revert(&life, first, 0), Err(Refusal::TooManyReverts));
    assert!(revert(&life, first_cut_until, 0).is_ok());
}

#[test]
fn nothing_counts_of_a_thread_that_goes_back_to_its_beginning() {
    let mut life = SimulatedThread::new();
    life.say(r#"start t1 "hi" · done"#);
    let now = Span {
        from: life.owner.thread().head().next(),
        until: None,
    };
    let bodies = revert(&life, Seq(1), 0).expect("a turn to go back to");
    let [RecordBody::Event(event)] = &bodies[..] else {
        panic!("one event was expected: {bodies:?}");
    };
    let Event::Reverted(reverted) = &**event else {
        panic!("not expected: {event:?}");
    };
    assert_eq!(reverted.lineage, [now]);
}
