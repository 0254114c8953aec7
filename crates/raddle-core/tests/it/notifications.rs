//! Notifications of a simulated thread, in the order in which the server sends them.

mod asks;
mod goal;
mod items;
mod open;
mod thread;

use raddle_core::*;
use serde_json::{Value, json};

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Runs lines, each in a round of its own, and returns the notifications since the beginning.
fn notifications_after(lines: &[&str]) -> Vec<(String, Value)> {
    let mut sim = SimulatedThread::new();
    sim.announcements.clear();
    for line in lines {
        sim.run_line(line);
    }
    wire_notifications(&sim)
}

/// Returns the notifications as they are on the wire.
fn wire_notifications(sim: &SimulatedThread) -> Vec<(String, Value)> {
    let notifications = sim.announcements.iter().flat_map(|it| &it.notifications);
    notifications
        .map(|it| {
            let params = serde_json::to_value(it).expect("JSON");
            (it.method().to_owned(), params)
        })
        .collect()
}

fn methods(notifications: &[(String, Value)]) -> Vec<&str> {
    notifications
        .iter()
        .map(|(method, _)| method.as_str())
        .collect()
}

#[test]
fn a_plain_turn() {
    let notifications = notifications_after(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"hel\"",
        "text i1 \"lo\"",
        "said i1 \"hello\"",
        "done 10",
    ]);
    assert_eq!(
        methods(&notifications),
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
    assert_eq!(notifications[4].1["item"]["text"], "");
    assert_eq!(notifications[5].1["delta"], "hel");
    assert_eq!(notifications[8].1["tokenUsage"]["last"]["inputTokens"], 10);
    let turn = &notifications[10].1["turn"];
    assert_eq!(turn["status"], "completed");
    assert_eq!(turn["itemsView"], "summary");
    assert_eq!(turn["items"][0]["text"], "hello");
    assert_eq!(turn["items"].as_array().map(Vec::len), Some(1));
}

/// An item's text comes with its deltas and at its end, also where it had none while it was open.
#[test]
fn an_item_begins_without_its_text() {
    let text = || "all".to_owned();
    for (body, members) in [
        (
            ItemBody::AgentMessage(AgentMessage {
                text: text(),
                phase: None,
            }),
            json!({ "text": ["", "all"] }),
        ),
        (
            ItemBody::Plan(PlanText { text: text() }),
            json!({ "text": ["", "all"] }),
        ),
        (
            ItemBody::Reasoning(Reasoning {
                summary: vec![text()],
                content: vec![text()],
            }),
            json!({ "summary": [[], ["all"]], "content": [[], ["all"]] }),
        ),
    ] {
        let mut sim = SimulatedThread::new();
        sim.report(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        sim.settle();
        sim.announcements.clear();
        sim.report(fixtures::complete_item(1, "i1", body, None));
        sim.settle();
        let notifications = wire_notifications(&sim);
        assert_eq!(methods(&notifications), ["item/started", "item/completed"]);
        for (member, texts) in members.as_object().expect("members") {
            assert_eq!(notifications[0].1["item"][member], texts[0], "{member}");
            assert_eq!(notifications[1].1["item"][member], texts[1], "{member}");
        }
    }
}

#[test]
fn each_text_grows_under_its_own_name() {
    let message = ItemBody::AgentMessage(AgentMessage::default());
    let thinking = ItemBody::Reasoning(Reasoning::default());
    for (body, part, method) in [
        (message, ItemPart::Text, "item/agentMessage/delta"),
        (
            ItemBody::Plan(PlanText::default()),
            ItemPart::Text,
            "item/plan/delta",
        ),
        (
            thinking.clone(),
            ItemPart::Summary(0),
            "item/reasoning/summaryTextDelta",
        ),
        (thinking, ItemPart::Content(0), "item/reasoning/textDelta"),
    ] {
        let mut sim = SimulatedThread::new();
        sim.report(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        sim.settle();
        sim.report(fixtures::start_item(1, "i1", body));
        sim.settle();
        sim.announcements.clear();
        sim.report(Command::AppendText(AppendText {
            item: "i1".into(),
            part,
            text: "more".to_owned(),
        }));
        sim.settle();
        let notifications = wire_notifications(&sim);
        assert_eq!(methods(&notifications), [method]);
        assert_eq!(notifications[0].1["delta"], "more");
    }
}

#[test]
fn usage_of_all_calls_is_summed_up() {
    let mut sim = SimulatedThread::new();
    for (call, line) in [(1, "start t1 \"hi\""), (2, "start t2 \"more\"")] {
        sim.run_line(line);
        sim.announcements.clear();
        sim.report(Command::EndModel(Box::new(EndModel {
            call,
            end: ModelEnd::Done {},
            usage: Some(Usage {
                input: 100,
                cached: 40,
                cache_written: 5,
                output: 20,
                reasoning: 7,
            }),
            estimated: false,
            price: None,
        })));
        sim.settle();
    }
    let notifications = wire_notifications(&sim);
    let usage = notifications
        .iter()
        .find(|it| it.0 == "thread/tokenUsage/updated");
    let usage = &usage.expect("what was used").1["tokenUsage"];
    let times = |times: i64| {
        json!({
            "inputTokens": 100 * times,
            "cachedInputTokens": 40 * times,
            "cacheWriteInputTokens": 5 * times,
            "outputTokens": 20 * times,
            "reasoningOutputTokens": 7 * times,
            "totalTokens": 120 * times,
        })
    };
    assert_eq!(usage["last"], times(1));
    assert_eq!(usage["total"], times(2));
}

/// A turn's summary is its newest complete message, whatever came after it.
#[test]
fn a_turn_ends_with_its_last_whole_message() {
    let tool = [
        "call i2 shell \"a\" run",
        "done",
        "ended i2 ok \"\"",
        "done",
    ];
    for (line, expected) in [
        ("said i1 \"hello\"", json!(["hello"])),
        ("message i1", json!([""])),
        ("thought i1", json!([])),
    ] {
        let notifications = notifications_after(&[&["start t1 \"hi\"", line][..], &tool].concat());
        let (method, params) = notifications.last().expect("the turn's end");
        assert_eq!(method, "turn/completed");
        let items = params["turn"]["items"].as_array().expect("items");
        let texts: Value = items.iter().map(|item| item["text"].clone()).collect();
        assert_eq!(texts, expected, "{line}");
    }
    let notifications = notifications_after(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"he\"",
        "broke 0s",
        "done",
    ]);
    let (_, params) = notifications.last().expect("the turn's end");
    assert_eq!(
        params["turn"]["items"],
        json!([]),
        "of a message that was cut off"
    );
}

/// The review's subject is shown at its start, and its result at its end.
#[test]
fn a_review() {
    for (line, expected) in [("said i1 \"fine\"", "fine"), ("thought i1", "")] {
        let notifications = notifications_after(&["review t1 \"look\"", line, "done"]);
        let reviews = notifications.iter().filter_map(|(method, params)| {
            let item = &params["item"];
            let ended = item["completedAtMs"].is_i64();
            let review = item["review"].as_str()?;
            Some(json!([method, item["type"], ended, review]))
        });
        assert_eq!(
            reviews.collect::<Vec<_>>(),
            [
                json!(["item/started", "enteredReviewMode", false, "changes"]),
                json!(["item/completed", "enteredReviewMode", true, "changes"]),
                json!(["item/started", "exitedReviewMode", false, expected]),
                json!(["item/completed", "exitedReviewMode", true, expected]),
            ]
        );
    }
}

#[test]
fn an_approval() {
    let notifications = notifications_after(&[
        "start t1 \"hi\"",
        "call i1 shell \"rm\" ask",
        "done",
        "answer 0 ann decline",
    ]);
    assert_eq!(
        methods(&notifications)[4..],
        [
            "thread/status/changed",
            "item/started",
            "serverRequest/resolved",
            "thread/status/changed",
            "item/completed",
        ]
    );
    assert_eq!(
        notifications[4].1["status"]["activeFlags"],
        json!(["waitingOnApproval"])
    );
    let id = format!("{}:0", fixtures::thread_id());
    assert_eq!(notifications[6].1["requestId"], id);
    assert_eq!(notifications[6].1["resolvedBy"], "ann");
    assert_eq!(notifications[6].1["decision"], "decline");
    assert_eq!(notifications[7].1["status"]["activeFlags"], json!([]));
    assert_eq!(notifications[8].1["item"]["status"], "declined");
}

#[test]
fn a_failure() {
    let notifications = notifications_after(&["start t1 \"hi\"", "broke 0s", "failed \"no\""]);
    assert_eq!(
        methods(&notifications)[4..],
        ["error", "thread/status/changed", "error", "turn/completed"]
    );
    assert_eq!(notifications[4].1["willRetry"], true);
    assert_eq!(notifications[4].1["error"]["class"], "transient");
    assert!(notifications[4].1["error"]["retryAtMs"].is_i64());
    assert_eq!(notifications[5].1["status"]["type"], "systemError");
    assert_eq!(notifications[6].1["willRetry"], false);
    assert_eq!(notifications[7].1["turn"]["error"]["message"], "no");
    assert_eq!(notifications[7].1["turn"]["error"]["class"], "internal");
    assert_eq!(notifications[7].1["turn"]["error"].get("retryAtMs"), None);
    assert_eq!(notifications[7].1["turn"]["items"], json!([]));
}

/// The record may be lost with the power, so lasting facts come last, with the record's number.
#[test]
fn a_call_that_broke_tells_its_usage_last() {
    let notifications = notifications_after(&["start t1 \"hi\"", "broke 5s 10"]);
    let methods = methods(&notifications);
    assert_eq!(
        methods[methods.len() - 2..],
        ["error", "thread/tokenUsage/updated"]
    );
}

#[test]
fn an_interrupt() {
    let notifications = notifications_after(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"hel\"",
        "interrupt t1",
    ]);
    assert_eq!(
        methods(&notifications)[6..],
        ["item/completed", "thread/status/changed", "turn/completed"]
    );
    assert_eq!(notifications[6].1["item"]["text"], "hel");
    assert_eq!(notifications[8].1["turn"]["status"], "interrupted");
}

#[test]
fn a_client_tool_is_asked_and_its_answer_not_announced() {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"start t1 "hi" · call i1 client "lookup" ask · done"#);
    let (id, method, params) = ask(sim.owner.thread(), RequestNumber(0)).expect("a request");
    assert_eq!(id.to_string(), format!("{}:0", fixtures::thread_id()));
    assert_eq!(method, "item/tool/call");
    assert_eq!(params["callId"], "call-i1");
    assert_eq!(params["tool"], "lookup");
    sim.announcements.clear();
    sim.run_line("answer 0 ann tool \"42\"");
    let methods: Vec<&str> = sim
        .announcements
        .iter()
        .flat_map(|announcement| &announcement.notifications)
        .map(|it| it.method())
        .collect();
    assert_eq!(methods, ["item/completed"]);
    assert_eq!(ask(sim.owner.thread(), RequestNumber(0)), None);
}

/// Runs a message of five long pieces.
fn long_message() -> (SimulatedThread, String) {
    let mut sim = SimulatedThread::new();
    let mut text_sent = String::new();
    sim.run_line(r#"start t1 "hi" · message i1"#);
    for letter in ["a", "b", "c", "d", "e"] {
        let text = letter.repeat(200 << 10);
        text_sent.push_str(&text);
        sim.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: ItemPart::Text,
            text,
        }));
        sim.settle();
    }
    (sim, text_sent)
}

fn unsettled_records(journal: &[Record]) -> Vec<&Record> {
    let mut records: Vec<&Record> = Vec::new();
    for record in journal {
        if let RecordBody::Event(event) = &record.body
            && let Some(item) = event.settles()
        {
            records
                .retain(|it| !matches!(&it.body, RecordBody::Delta(delta) if delta.item == *item));
        }
        records.push(record);
    }
    records
}

fn saves(record: &Record) -> bool {
    let RecordBody::Event(event) = &record.body else {
        return false;
    };
    matches!(**event, Event::ItemSaved(_))
}

#[test]
fn a_reconnecting_client_receives_saved_text_once() {
    let (sim, text_sent) = long_message();
    let records = unsettled_records(&sim.journal);
    assert!(records.iter().filter(|it| saves(it)).count() >= 2);
    let deltas = |record: &&&Record| matches!(record.body, RecordBody::Delta(_));
    let rest: usize = records.iter().filter(deltas).count();
    assert!(
        rest * Delta::BYTES_MAX < text_sent.len() / 2,
        "{rest} deltas were kept"
    );
    let mut thread = Thread::new();
    let mut received = String::new();
    for record in records {
        for notification in notifications_on_replay(&mut thread, record) {
            if let raddle_protocol::Notification::AgentMessageDelta(it) = notification {
                received.push_str(&it.delta);
            }
        }
    }
    assert!(
        received == text_sent,
        "{} bytes of {}",
        received.len(),
        text_sent.len()
    );
    assert_eq!(thread, *sim.owner.thread());
}

/// The position in the text is gone with the deltas, so the client receives the complete item and
/// no piece of it.
#[test]
fn a_client_with_part_of_a_completed_text_receives_the_whole_item() {
    let (mut sim, text_sent) = long_message();
    let first = sim
        .journal
        .iter()
        .find(|it| matches!(it.body, RecordBody::Delta(_)));
    let cursor = first.expect("a delta").seq;
    sim.run_line("done");
    let records = unsettled_records(&sim.journal);
    assert!(records.iter().any(|it| saves(it)));
    let (known, missed) = records.split_at(records.partition_point(|it| it.seq <= cursor));
    let mut thread = Thread::new();
    known.iter().for_each(|record| thread.apply(record));
    let mut reader = CatchUpReader::returning(thread, sim.owner.thread());
    let mut whole = None;
    for record in missed {
        for notification in reader.read((*record).clone()).notifications {
            let params = serde_json::to_value(&notification).expect("JSON");
            match notification.method() {
                "item/agentMessage/delta" => panic!("it was told a piece again"),
                "item/completed" => whole = params["item"]["text"].as_str().map(str::to_owned),
                _ => {}
            }
        }
    }
    assert!(whole.as_ref() == Some(&text_sent));
}

/// A question is sent as a request, and not as an item, also to a client that subscribes while it
/// is open.
#[test]
fn a_question() {
    let mut sim = SimulatedThread::new();
    sim.announcements.clear();
    for line in [
        "start t1 \"hi\"",
        "call i1 questions \"which?\" ask",
        "done",
    ] {
        sim.run_line(line);
    }
    let notifications = wire_notifications(&sim);
    let begun = notifications
        .iter()
        .filter(|(method, _)| method == "item/started");
    let kinds: Vec<&Value> = begun.map(|(_, params)| &params["item"]["type"]).collect();
    assert_eq!(kinds, ["userMessage"]);
    assert_eq!(notifications_of_open_items(sim.owner.thread()), []);
}
