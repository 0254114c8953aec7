//! What is told to a client that comes in the middle.

use raddle_core::*;
use serde_json::{Value, json};

use crate::simulated::SimulatedThread;

fn life(line: &str) -> SimulatedThread {
    let mut life = SimulatedThread::new();
    life.say(line);
    life
}

fn wire(told: impl IntoIterator<Item = raddle_protocol::Notification>) -> Vec<(String, Value)> {
    let told = told.into_iter().map(|it| {
        let params = serde_json::to_value(&it).expect("JSON");
        (it.method().to_owned(), params)
    });
    told.collect()
}

/// Each open item, and then all its text at once, if it has any.
#[test]
fn what_is_open_is_told_as_if_it_began_now() {
    let life = life(r#"start t1 "hi" · message i1 · message i2 · text i2 "hel" · text i2 "lo""#);
    let told = wire(tell_open(life.owner.thread()));
    let methods: Vec<&str> = told.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        methods,
        ["item/started", "item/started", "item/agentMessage/delta"]
    );
    assert_eq!(told[0].1["item"]["id"], "i1");
    assert_eq!(told[1].1["item"]["text"], "");
    assert_eq!(told[1].1["turnId"], "t1");
    assert_eq!(told[2].1["delta"], "hello");
}

#[test]
fn where_nothing_runs_nothing_is_open() {
    let life = life(r#"start t1 "hi" · said i1 "hello" · done"#);
    assert_eq!(tell_open(life.owner.thread()), []);
}

/// Under the turn that runs, or else the newest; nothing before a call has said what it used.
#[test]
fn what_was_used_is_told_once_it_is_known() {
    for (line, wanted) in [
        (r#"rename "n""#, None),
        (r#"start t1 "hi""#, None),
        (r#"start t1 "hi" · done 10"#, Some(("t1", 10))),
        (
            r#"start t1 "hi" · done 10 · start t2 "bye""#,
            Some(("t2", 10)),
        ),
    ] {
        let told = wire(tell_usage(life(line).owner.thread()));
        let found = told.first().map(|(method, params)| {
            assert_eq!(method, "thread/tokenUsage/updated");
            let total = &params["tokenUsage"]["total"];
            (params["turnId"].clone(), total["totalTokens"].clone())
        });
        let wanted = wanted.map(|(turn, tokens)| (json!(turn), json!(tokens)));
        assert_eq!(found, wanted, "{line}");
    }
}
