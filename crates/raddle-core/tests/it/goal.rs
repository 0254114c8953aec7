//! Goals, where rule files cannot reach.

use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// A model that never says that it is done does not go on for ever, unless someone wants it to.
#[test]
fn a_goal_rests_after_so_many_turns() {
    let mut life = SimulatedThread::new();
    life.say("goal to \"a poem\"");
    for word in ["goal is active", "goal to \"a song\" is active"] {
        for turn in 1..=100 {
            assert_eq!(
                fixtures::pending(life.owner.thread()),
                "BeginTurn",
                "{turn}"
            );
            life.say(&format!("goes t{turn}"));
            life.say("done");
        }
        let status = life.owner.thread().goal().map(|goal| goal.status);
        assert_eq!(status, Some(GoalStatus::Paused));
        life.say(word);
    }
}

#[test]
fn the_model_is_told_what_the_goal_is_and_what_was_used_on_it() {
    for (goal, used) in [
        ("goal to \"a poem\"", "40 tokens were used on it so far."),
        (
            "goal to \"a poem\" within 100",
            "40 tokens were used on it so far of the 100 it may use.",
        ),
    ] {
        let mut life = SimulatedThread::new();
        for line in [goal, "goes t1", "done 40", "goes t2"] {
            life.say(line);
        }
        let entries = Context::of(&life.journal).entries();
        let Some(ContextEntry::Note(note)) = entries.last().map(|it| &**it) else {
            panic!("a note was expected: {entries:?}");
        };
        assert!(note.contains("<goal>\na poem\n</goal>"), "{note}");
        assert!(note.contains(used), "{note}");
    }
}
