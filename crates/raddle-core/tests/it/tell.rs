//! What the wire says of a life, in the order in which the real server says it.

use raddle_core::*;
use serde_json::{Value, json};

use crate::life::Life;
use crate::words;

/// Plays lines, each in a round of its own, and answers with what was told since the beginning.
fn told(lines: &[&str]) -> Vec<(String, Value)> {
    let mut life = Life::new();
    life.told.clear();
    for line in lines {
        let command = words::command(line, life.owner.thread(), life.now);
        life.report(command);
        life.settle();
    }
    let told = life.told.iter().flat_map(|told| &told.notifications);
    told.map(|it| {
        let params = serde_json::to_value(it).expect("JSON");
        (it.method().to_owned(), params)
    })
    .collect()
}

fn methods(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(method, _)| method.as_str()).collect()
}

#[test]
fn a_plain_turn() {
    let told = told(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"hel\"",
        "text i1 \"lo\"",
        "said i1 \"hello\"",
        "done 10",
    ]);
    assert_eq!(
        methods(&told),
        [
            "thread/status/changed",
            "turn/started",
            "item/started",
            "item/completed",
            "item/started",
            "item/agentMessage/delta",
            "item/agentMessage/delta",
            "item/completed",
            "thread/tokenUsage/updated",
            "thread/status/changed",
            "turn/completed",
        ]
    );
    assert_eq!(told[4].1["item"]["text"], "");
    assert_eq!(told[5].1["delta"], "hel");
    let turn = &told[10].1["turn"];
    assert_eq!(turn["status"], "completed");
    assert_eq!(turn["itemsView"], "summary");
    assert_eq!(turn["items"][0]["text"], "hello");
    assert_eq!(turn["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_approval() {
    let told = told(&[
        "start t1 \"hi\"",
        "call i1 shell \"rm\" ask",
        "done",
        "answer 0 ann decline",
    ]);
    assert_eq!(
        methods(&told)[4..],
        [
            "item/started",
            "thread/status/changed",
            "thread/status/changed",
            "serverRequest/resolved",
            "item/completed",
        ]
    );
    assert_eq!(
        told[5].1["status"]["activeFlags"],
        json!(["waitingOnApproval"])
    );
    assert_eq!(told[6].1["status"]["activeFlags"], json!([]));
    let id = format!("{}:0", words::thread_id());
    assert_eq!(told[7].1["requestId"], id);
    assert_eq!(told[8].1["item"]["status"], "declined");
}

#[test]
fn a_failure() {
    let told = told(&["start t1 \"hi\"", "broke 0s", "failed \"no\""]);
    assert_eq!(
        methods(&told)[4..],
        ["error", "thread/status/changed", "error", "turn/completed"]
    );
    assert_eq!(told[4].1["willRetry"], true);
    assert_eq!(told[5].1["status"]["type"], "systemError");
    assert_eq!(told[6].1["willRetry"], false);
    assert_eq!(told[7].1["turn"]["error"]["message"], "no");
    assert_eq!(told[7].1["turn"]["items"], json!([]));
}

/// The record may be lost with the power, so what lasts comes last, with the record's number.
#[test]
fn a_call_that_broke_tells_its_usage_last() {
    let told = told(&["start t1 \"hi\"", "broke 5s 10"]);
    let methods = methods(&told);
    assert_eq!(
        methods[methods.len() - 2..],
        ["error", "thread/tokenUsage/updated"]
    );
}

#[test]
fn an_interrupt() {
    let told = told(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"hel\"",
        "interrupt t1",
    ]);
    assert_eq!(
        methods(&told)[6..],
        ["item/completed", "thread/status/changed", "turn/completed"]
    );
    assert_eq!(told[6].1["item"]["text"], "hel");
    assert_eq!(told[8].1["turn"]["status"], "interrupted");
}

#[test]
fn a_client_tool_is_asked_and_its_answer_not_announced() {
    let mut life = Life::new();
    for line in ["start t1 \"hi\"", "call i1 client \"lookup\" ask", "done"] {
        let command = words::command(line, life.owner.thread(), life.now);
        life.report(command);
        life.settle();
    }
    let (id, method, params) = ask(life.owner.thread(), RequestNumber(0)).expect("a request");
    assert_eq!(id.to_string(), format!("{}:0", words::thread_id()));
    assert_eq!(method, "item/tool/call");
    assert_eq!(params["callId"], "call-i1");
    assert_eq!(params["tool"], "lookup");
    life.told.clear();
    let command = words::command("answer 0 ann tool \"42\"", life.owner.thread(), life.now);
    life.report(command);
    life.settle();
    let methods: Vec<&str> = life
        .told
        .iter()
        .flat_map(|told| &told.notifications)
        .map(|it| it.method())
        .collect();
    assert_eq!(methods, ["item/completed"]);
    assert_eq!(ask(life.owner.thread(), RequestNumber(0)), None);
}

#[test]
fn who_comes_back_hears_a_text_once_however_often_it_was_saved() {
    let mut life = Life::new();
    let mut said = String::new();
    for line in ["start t1 \"hi\"", "message i1"] {
        let command = words::command(line, life.owner.thread(), life.now);
        life.report(command);
        life.settle();
    }
    for letter in ["a", "b", "c", "d", "e"] {
        let text = letter.repeat(200 << 10);
        said.push_str(&text);
        life.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: Part::Text,
            text,
        }));
        life.settle();
    }
    // What a journal keeps: no delta that a later record has settled.
    let saved = |record: &&Record| match &record.body {
        Body::Event(event) => matches!(**event, Event::ItemSaved(_)),
        Body::Delta(_) => false,
    };
    assert!(life.journal.iter().filter(saved).count() >= 2);
    let last = life.journal.iter().rfind(saved).map(|record| record.seq);
    let kept = life.journal.iter().filter(|record| {
        let delta = matches!(record.body, Body::Delta(_));
        !delta || Some(record.seq) > last
    });
    let mut thread = Thread::new();
    let mut heard = String::new();
    for record in kept {
        for told in tell_again(&mut thread, record) {
            if let raddle_protocol::Notification::AgentMessageDelta(it) = told {
                heard.push_str(&it.delta);
            }
        }
    }
    assert!(heard == said, "{} bytes of {}", heard.len(), said.len());
    assert_eq!(thread, *life.owner.thread());
}
