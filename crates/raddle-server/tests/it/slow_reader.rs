//! A client that reads nothing while its thread says a great deal: it loses nothing and costs little.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Stage;

const THREADS: usize = 6;
const TURNS: usize = 2;
const TEXT_BYTES: usize = 1 << 20;

/// What may wait for one client: what it is told before it falls behind, and the largest round on top of it.
const QUEUED_BYTES_MAX: usize = 8 << 20;

#[tokio::test]
async fn whoever_reads_late_is_told_everything() {
    let mut stage = Stage::new();
    let letters = ('a'..='z').take(THREADS * TURNS);
    stage.says = letters
        .map(|it| it.to_string().repeat(TEXT_BYTES))
        .collect();
    let mut server = stage.open();
    let mut quick = TestClient::connect(&mut server).await;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(quick.start_thread().await);
    }
    let mut slow = TestClient::connect(&mut server).await;
    for id in &threads {
        let subscribed = slow.ask("thread/resume", json!({"threadId": id})).await;
        subscribed.expect("subscribed");
        assert_eq!(slow.next().await["method"], "thread/goal/cleared");
    }
    for id in threads.iter().flat_map(|id| [id; TURNS]) {
        let input = json!([{"type": "text", "text": "hi"}]);
        quick.request("turn/start", json!({"threadId": id, "input": input}));
        while quick.next().await["method"] != "turn/completed" {
            let queued = slow.queue.queued_bytes();
            assert!(queued <= QUEUED_BYTES_MAX, "{queued} bytes wait");
        }
    }

    // Each thread's words are in order; which thread's come first is not said.
    let mut heard: HashMap<String, ReceivedThread> = HashMap::new();
    let mut turns = 0;
    while turns < THREADS * TURNS {
        let message = slow.next().await;
        let params = &message["params"];
        let it = heard
            .entry(text(&params["threadId"]).to_owned())
            .or_default();
        if let Some(seq) = message.get("seq").and_then(Value::as_u64) {
            assert!(seq > it.last, "{seq} after {}", it.last);
            it.last = seq;
        }
        match message["method"].as_str() {
            Some("item/started") => it.open.clear(),
            Some("item/agentMessage/delta") => it.open.push_str(text(&params["delta"])),
            Some("item/completed") if params["item"]["type"] == "agentMessage" => {
                let whole = text(&params["item"]["text"]);
                assert!(whole.starts_with(&it.open), "the deltas begin otherwise");
                it.texts.push(whole.to_owned());
            }
            Some("turn/completed") => turns += 1,
            _ => {}
        }
    }
    let texts = threads.iter().flat_map(|id| &heard[text(id)].texts);
    assert!(texts.eq(&stage.says), "it was told something else");

    // And now it hears live.
    let named = json!({"threadId": threads[0], "name": "a"});
    quick.request("thread/name/set", named);
    assert_eq!(slow.next().await["method"], "thread/name/updated");
}

/// What was heard of a thread.
#[derive(Default)]
struct ReceivedThread {
    texts: Vec<String>,
    /// What was said so far of what is not completed.
    open: String,
    last: u64,
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
