//! Notifications for a client that subscribes during a turn.

use raddle_core::*;
use serde_json::{Value, json};

use crate::simulated::SimulatedThread;

fn simulated(line: &str) -> SimulatedThread {
    let mut sim = SimulatedThread::new();
    sim.run_line(line);
    sim
}

fn wire(
    notifications: impl IntoIterator<Item = raddle_protocol::Notification>,
) -> Vec<(String, Value)> {
    let notifications = notifications.into_iter().map(|it| {
        let params = serde_json::to_value(&it).expect("JSON");
        (it.method().to_owned(), params)
    });
    notifications.collect()
}

/// Each open item is followed by all its text at once, if it has any.
#[test]
fn open_items_are_announced_as_if_they_began_now() {
    let sim =
        simulated(r#"start t1 "hi" · message i1 · message i2 · text i2 "hel" · text i2 "lo""#);
    let notifications = wire(notifications_of_open_items(sim.owner.thread()));
    let methods: Vec<&str> = notifications.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        methods,
        ["item/started", "item/started", "item/agentMessage/delta"]
    );
    assert_eq!(notifications[0].1["item"]["id"], "i1");
    assert_eq!(notifications[1].1["item"]["text"], "");
    assert_eq!(notifications[1].1["turnId"], "t1");
    assert_eq!(notifications[2].1["delta"], "hello");
}

#[test]
fn without_a_turn_nothing_is_open() {
    let sim = simulated(r#"start t1 "hi" · said i1 "hello" · done"#);
    assert_eq!(notifications_of_open_items(sim.owner.thread()), []);
}

/// Usage is announced under the running turn, or else the newest; never before a call has reported
/// some.
#[test]
fn usage_is_announced_once_known() {
    for (line, expected) in [
        (r#"rename "n""#, None),
        (r#"start t1 "hi""#, None),
        (r#"start t1 "hi" · done 10"#, Some(("t1", 10))),
        (
            r#"start t1 "hi" · done 10 · start t2 "bye""#,
            Some(("t2", 10)),
        ),
    ] {
        let notifications = wire(notification_of_usage(simulated(line).owner.thread()));
        let actual = notifications.first().map(|(method, params)| {
            assert_eq!(method, "thread/tokenUsage/updated");
            let total = &params["tokenUsage"]["total"];
            (params["turnId"].clone(), total["totalTokens"].clone())
        });
        let expected = expected.map(|(turn, tokens)| (json!(turn), json!(tokens)));
        assert_eq!(actual, expected, "{line}");
    }
}
