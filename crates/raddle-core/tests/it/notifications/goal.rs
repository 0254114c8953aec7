//! Notifications of a thread's goal.

use raddle_core::*;
use serde_json::json;

use super::notifications_after;
use crate::fixtures;
use crate::simulated::SimulatedThread;

/// A notification names the turn in which the goal changed, if there was one.
#[test]
fn changes_of_the_goal_are_announced() {
    let notifications = notifications_after(&[
        "goal to \"a poem\" within 100",
        "goes t1",
        "call i1 update_goal \"x\" goal blocked",
        "done 40",
        "done 2",
        "forget",
    ]);
    let goals = notifications
        .iter()
        .filter(|it| it.0.starts_with("thread/goal/"));
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
fn a_new_subscriber_receives_the_goal() {
    let mut sim = SimulatedThread::new();
    let goal_state = |sim: &SimulatedThread| {
        let notification = notification_of_goal(sim.owner.thread());
        let notification = notification.expect("a thread that was started");
        (
            notification.method(),
            serde_json::to_value(&notification).expect("JSON"),
        )
    };
    assert_eq!(goal_state(&sim).0, "thread/goal/cleared");
    for (line, later_ms) in [
        ("goal to \"a poem\" within 100", 0),
        ("goes t1", 3_000),
        ("done 40", 7_500),
    ] {
        sim.now = sim.now.plus_ms(later_ms);
        sim.run_line(line);
    }
    let (method, params) = goal_state(&sim);
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
