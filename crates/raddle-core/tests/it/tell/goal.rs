//! A thread's goal, as the wire tells it.

use raddle_core::*;
use serde_json::json;

use super::told;
use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Under the turn in which it changed, if that was in a turn.
#[test]
fn a_goal_is_told_as_it_changes() {
    let told = told(&[
        "goal to \"a poem\" within 100",
        "goes t1",
        "call i1 update_goal \"x\" goal blocked",
        "done 40",
        "done 2",
        "forget",
    ]);
    let goals = told.iter().filter(|it| it.0.starts_with("thread/goal/"));
    let goals: Vec<_> = goals
        .map(|(method, params)| {
            let goal = &params["goal"];
            json!([method, params["turnId"], goal["status"], goal["tokensUsed"]])
        })
        .collect();
    assert_eq!(
        goals,
        [
            json!(["thread/goal/updated", null, "active", 0]),
            json!(["thread/goal/updated", "t1", "blocked", 0]),
            json!(["thread/goal/updated", "t1", "blocked", 42]),
            json!(["thread/goal/cleared", null, null, null]),
        ]
    );
}

#[test]
fn who_comes_is_told_how_the_goal_stands() {
    let mut life = SimulatedThread::new();
    let stands = |life: &SimulatedThread| {
        let told = tell_goal(life.owner.thread()).expect("a thread that was started");
        (told.method(), serde_json::to_value(&told).expect("JSON"))
    };
    assert_eq!(stands(&life).0, "thread/goal/cleared");
    for (line, later_ms) in [
        ("goal to \"a poem\" within 100", 0),
        ("goes t1", 3_000),
        ("done 40", 7_500),
    ] {
        life.now = life.now.plus_ms(later_ms);
        life.say(line);
    }
    let (method, params) = stands(&life);
    assert_eq!(method, "thread/goal/updated");
    assert_eq!(params["turnId"], json!(null));
    assert_eq!(
        params["goal"],
        json!({
            "threadId": fixtures::thread_id(),
            "objective": "a poem",
            "status": "active",
            "tokenBudget": 100,
            "tokensUsed": 40,
            "timeUsedSeconds": 7,
            "createdAt": 1_000,
            "updatedAt": 1_010,
        })
    );
}
