//! Goals, where rule files cannot reach.

use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// A model that never reports completion does not continue for ever, unless the user resumes the
/// goal.
#[test]
fn a_goal_pauses_after_its_maximum_of_turns() {
    let mut sim = SimulatedThread::new();
    sim.run_line("goal to \"a poem\"");
    for word in ["goal is active", "goal to \"a song\" is active"] {
        for turn in 1..=100 {
            assert_eq!(fixtures::pending(sim.owner.thread()), "BeginTurn", "{turn}");
            sim.run_line(&format!("goes t{turn}"));
            sim.run_line("done");
        }
        let status = sim.owner.thread().goal().map(|goal| goal.status);
        assert_eq!(status, Some(GoalStatus::Paused));
        sim.run_line(word);
    }
}

#[test]
fn the_goal_note_has_the_objective_and_the_usage() {
    for (goal, used) in [
        ("goal to \"a poem\"", "40 tokens were used on it so far."),
        (
            "goal to \"a poem\" within 100",
            "40 tokens were used on it so far of the 100 it may use.",
        ),
    ] {
        let mut sim = SimulatedThread::new();
        for line in [goal, "goes t1", "done 40", "goes t2"] {
            sim.run_line(line);
        }
        let entries = Context::of(&sim.journal).entries();
        let Some(ContextEntry::Note(note)) = entries.last().map(|it| &**it) else {
            panic!("a note was expected: {entries:?}");
        };
        assert!(note.contains("<goal>\na poem\n</goal>"), "{note}");
        assert!(note.contains(used), "{note}");
    }
}
