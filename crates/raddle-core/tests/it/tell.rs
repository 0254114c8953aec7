//! What the wire says of a life, in the order in which the real server says it.

mod asks;
mod goal;
mod items;
mod open;
mod thread;

use raddle_core::*;
use serde_json::{Value, json};

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Plays lines, each in a round of its own, and answers with what was told since the beginning.
fn told(lines: &[&str]) -> Vec<(String, Value)> {
    let mut life = SimulatedThread::new();
    life.told.clear();
    for line in lines {
        life.say(line);
    }
    shown(&life)
}

/// What was told, as the wire has it.
fn shown(life: &SimulatedThread) -> Vec<(String, Value)> {
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
    assert_eq!(told[8].1["tokenUsage"]["last"]["inputTokens"], 10);
    let turn = &told[10].1["turn"];
    assert_eq!(turn["status"], "completed");
    assert_eq!(turn["itemsView"], "summary");
    assert_eq!(turn["items"][0]["text"], "hello");
    assert_eq!(turn["items"].as_array().map(Vec::len), Some(1));
}

/// What it says comes with its deltas and at its end, also where it had nothing to say while it was open.
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
        let mut life = SimulatedThread::new();
        life.report(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        life.settle();
        life.told.clear();
        life.report(Command::CompleteItem(Box::new(CompleteItem {
            call: 1,
            item: "i1".into(),
            body,
            sealed: None,
        })));
        life.settle();
        let told = shown(&life);
        assert_eq!(methods(&told), ["item/started", "item/completed"]);
        for (member, texts) in members.as_object().expect("members") {
            assert_eq!(told[0].1["item"][member], texts[0], "{member}");
            assert_eq!(told[1].1["item"][member], texts[1], "{member}");
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
        let mut life = SimulatedThread::new();
        life.report(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        life.settle();
        life.report(Command::StartItem(Box::new(StartItem {
            call: 1,
            item: "i1".into(),
            body,
        })));
        life.settle();
        life.told.clear();
        life.report(Command::AppendText(AppendText {
            item: "i1".into(),
            part,
            text: "more".to_owned(),
        }));
        life.settle();
        let told = shown(&life);
        assert_eq!(methods(&told), [method]);
        assert_eq!(told[0].1["delta"], "more");
    }
}

#[test]
fn what_every_call_used_is_summed_up() {
    let mut life = SimulatedThread::new();
    for (call, line) in [(1, "start t1 \"hi\""), (2, "start t2 \"more\"")] {
        life.say(line);
        life.told.clear();
        life.report(Command::EndModel(Box::new(EndModel {
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
        life.settle();
    }
    let told = shown(&life);
    let usage = told.iter().find(|it| it.0 == "thread/tokenUsage/updated");
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

/// A turn is summed up by its newest whole message, whatever came after it.
#[test]
fn a_turn_ends_with_its_last_whole_message() {
    let tool = [
        "call i2 shell \"a\" run",
        "done",
        "ended i2 ok \"\"",
        "done",
    ];
    for (line, wanted) in [
        ("said i1 \"hello\"", json!(["hello"])),
        ("message i1", json!([""])),
        ("thought i1", json!([])),
    ] {
        let told = told(&[&["start t1 \"hi\"", line][..], &tool].concat());
        let (method, params) = told.last().expect("the turn's end");
        assert_eq!(method, "turn/completed");
        let items = params["turn"]["items"].as_array().expect("items");
        let texts: Value = items.iter().map(|item| item["text"].clone()).collect();
        assert_eq!(texts, wanted, "{line}");
    }
    let told = told(&[
        "start t1 \"hi\"",
        "message i1",
        "text i1 \"he\"",
        "broke 0s",
        "done",
    ]);
    let (_, params) = told.last().expect("the turn's end");
    assert_eq!(
        params["turn"]["items"],
        json!([]),
        "of a message that was cut off"
    );
}

/// It is shown what is reviewed, and at the end what came of it.
#[test]
fn a_review() {
    for (said, wanted) in [("said i1 \"fine\"", "fine"), ("thought i1", "")] {
        let told = told(&["review t1 \"look\"", said, "done"]);
        let shown = told.iter().filter_map(|(method, params)| {
            let item = &params["item"];
            let ended = item["completedAtMs"].is_i64();
            let review = item["review"].as_str()?;
            Some(json!([method, item["type"], ended, review]))
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                json!(["item/started", "enteredReviewMode", false, "changes"]),
                json!(["item/completed", "enteredReviewMode", true, "changes"]),
                json!(["item/started", "exitedReviewMode", false, wanted]),
                json!(["item/completed", "exitedReviewMode", true, wanted]),
            ]
        );
    }
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
            "thread/status/changed",
            "item/started",
            "serverRequest/resolved",
            "thread/status/changed",
            "item/completed",
        ]
    );
    assert_eq!(
        told[4].1["status"]["activeFlags"],
        json!(["waitingOnApproval"])
    );
    let id = format!("{}:0", fixtures::thread_id());
    assert_eq!(told[6].1["requestId"], id);
    assert_eq!(told[6].1["resolvedBy"], "ann");
    assert_eq!(told[6].1["decision"], "decline");
    assert_eq!(told[7].1["status"]["activeFlags"], json!([]));
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
    assert_eq!(told[4].1["error"]["class"], "transient");
    assert!(told[4].1["error"]["retryAtMs"].is_i64());
    assert_eq!(told[5].1["status"]["type"], "systemError");
    assert_eq!(told[6].1["willRetry"], false);
    assert_eq!(told[7].1["turn"]["error"]["message"], "no");
    assert_eq!(told[7].1["turn"]["error"]["class"], "internal");
    assert_eq!(told[7].1["turn"]["error"].get("retryAtMs"), None);
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
    let mut life = SimulatedThread::new();
    life.say(r#"start t1 "hi" · call i1 client "lookup" ask · done"#);
    let (id, method, params) = ask(life.owner.thread(), RequestNumber(0)).expect("a request");
    assert_eq!(id.to_string(), format!("{}:0", fixtures::thread_id()));
    assert_eq!(method, "item/tool/call");
    assert_eq!(params["callId"], "call-i1");
    assert_eq!(params["tool"], "lookup");
    life.told.clear();
    life.say("answer 0 ann tool \"42\"");
    let methods: Vec<&str> = life
        .told
        .iter()
        .flat_map(|told| &told.notifications)
        .map(|it| it.method())
        .collect();
    assert_eq!(methods, ["item/completed"]);
    assert_eq!(ask(life.owner.thread(), RequestNumber(0)), None);
}

/// A message of five long pieces, and what a journal keeps of it: no delta that a later record has settled.
fn long_message() -> (SimulatedThread, String) {
    let mut life = SimulatedThread::new();
    let mut said = String::new();
    life.say(r#"start t1 "hi" · message i1"#);
    for letter in ["a", "b", "c", "d", "e"] {
        let text = letter.repeat(200 << 10);
        said.push_str(&text);
        life.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: ItemPart::Text,
            text,
        }));
        life.settle();
    }
    (life, said)
}

fn kept(journal: &[Record]) -> Vec<&Record> {
    let mut kept: Vec<&Record> = Vec::new();
    for record in journal {
        if let RecordBody::Event(event) = &record.body
            && let Some(item) = event.settles()
        {
            kept.retain(|it| !matches!(&it.body, RecordBody::Delta(delta) if delta.item == *item));
        }
        kept.push(record);
    }
    kept
}

fn saves(record: &Record) -> bool {
    let RecordBody::Event(event) = &record.body else {
        return false;
    };
    matches!(**event, Event::ItemSaved(_))
}

#[test]
fn who_comes_back_hears_a_text_once_however_often_it_was_saved() {
    let (life, said) = long_message();
    let kept = kept(&life.journal);
    assert!(kept.iter().filter(|it| saves(it)).count() >= 2);
    let deltas = |record: &&&Record| matches!(record.body, RecordBody::Delta(_));
    let rest: usize = kept.iter().filter(deltas).count();
    assert!(
        rest * Delta::BYTES_MAX < said.len() / 2,
        "{rest} deltas were kept"
    );
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

/// How far it was told is gone with the deltas, so it is told the whole and no piece of it.
#[test]
fn who_was_told_a_part_of_a_text_that_was_saved_and_is_complete_hears_the_whole() {
    let (mut life, said) = long_message();
    let first = life
        .journal
        .iter()
        .find(|it| matches!(it.body, RecordBody::Delta(_)));
    let seen = first.expect("a delta").seq;
    life.say("done");
    let kept = kept(&life.journal);
    assert!(kept.iter().any(|it| saves(it)));
    let (known, missed) = kept.split_at(kept.partition_point(|it| it.seq <= seen));
    let mut thread = Thread::new();
    known.iter().for_each(|record| thread.apply(record));
    let mut reader = CatchUpReader::returning(thread, life.owner.thread());
    let mut whole = None;
    for record in missed {
        for told in reader.read((*record).clone()).notifications {
            let params = serde_json::to_value(&told).expect("JSON");
            match told.method() {
                "item/agentMessage/delta" => panic!("it was told a piece again"),
                "item/completed" => whole = params["item"]["text"].as_str().map(str::to_owned),
                _ => {}
            }
        }
    }
    assert!(whole.as_ref() == Some(&said));
}

/// A question is told as a request, and not as an item, also to one who comes while it is open.
#[test]
fn a_question() {
    let mut life = SimulatedThread::new();
    life.told.clear();
    for line in [
        "start t1 \"hi\"",
        "call i1 questions \"which?\" ask",
        "done",
    ] {
        life.say(line);
    }
    let told = shown(&life);
    let begun = told.iter().filter(|(method, _)| method == "item/started");
    let kinds: Vec<&Value> = begun.map(|(_, params)| &params["item"]["type"]).collect();
    assert_eq!(kinds, ["userMessage"]);
    assert_eq!(tell_open(life.owner.thread()), []);
}
