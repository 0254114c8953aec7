//! Reverts, where rule files cannot reach.

use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

fn revert(sim: &SimulatedThread, at: Seq, turns: u64) -> Result<Vec<RecordBody>, Refusal> {
    let thread = sim.owner.thread();
    let command = fixtures::command(&format!("revert t {at} {turns}"), thread, sim.now);
    thread.decide(command, sim.now).map(|(bodies, _)| bodies)
}

/// Runs a turn and reverts it at once.
fn reverted_turn(sim: &mut SimulatedThread) {
    let (at, turns) = (sim.owner.thread().head().next(), sim.owner.thread().turns());
    sim.run_line(r#"start t "no" · done"#);
    sim.run_line(&format!("revert t {at} {turns}"));
    assert_eq!(sim.owner.thread().turns(), turns);
}

fn compact(sim: &mut SimulatedThread) {
    sim.run_line(r#"compact c · compacted i "so far" · done"#);
}

/// The lineage has a maximum of ranges, until a summary reduces it to one.
#[test]
fn reverts_are_limited_until_the_thread_is_compacted() {
    let mut sim = SimulatedThread::new();
    for _ in 0..255 {
        reverted_turn(&mut sim);
    }
    let head = sim.owner.thread().head();
    sim.run_line(r#"start t "no" · done"#);
    assert_eq!(revert(&sim, head.next(), 0), Err(Refusal::TooManyReverts));
    compact(&mut sim);
    reverted_turn(&mut sim);
}

/// Old reverted ranges are dropped, and then no revert can go behind them.
#[test]
fn a_maximum_of_reverted_ranges_is_kept() {
    let mut sim = SimulatedThread::new();
    let first = sim.owner.thread().head().next();
    sim.run_line(r#"start t0 "hi" · done"#);
    reverted_turn(&mut sim);
    let first_cut_until = sim.owner.thread().head();
    for number in 2..=257 {
        assert!(revert(&sim, first, 0).is_ok(), "before {number}");
        if number % 100 == 0 {
            compact(&mut sim);
        }
        reverted_turn(&mut sim);
    }
    assert_eq!(revert(&sim, first, 0), Err(Refusal::TooManyReverts));
    assert!(revert(&sim, first_cut_until, 0).is_ok());
}

#[test]
fn a_revert_to_the_beginning_leaves_an_empty_lineage() {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"start t1 "hi" · done"#);
    let expected = Span {
        from: sim.owner.thread().head().next(),
        until: None,
    };
    let bodies = revert(&sim, Seq(1), 0).expect("a turn to go back to");
    let [RecordBody::Event(event)] = &bodies[..] else {
        panic!("one event was expected: {bodies:?}");
    };
    let Event::Reverted(reverted) = &**event else {
        panic!("not expected: {event:?}");
    };
    assert_eq!(reverted.lineage, [expected]);
}
