//! A client that reads nothing while its thread sends a great deal: it loses nothing and costs
//! little.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;

const THREADS: usize = 6;
const TURNS: usize = 2;
const TEXT_BYTES: usize = 1 << 20;

/// Limit of the bytes queued for one client: the backlog before catch-up, and the largest round on
/// top of it.
const QUEUED_BYTES_MAX: usize = 8 << 20;

#[tokio::test]
async fn a_slow_reader_receives_everything() {
    let mut harness = Harness::new();
    let letters = ('a'..='z').take(THREADS * TURNS);
    harness.says = letters
        .map(|it| it.to_string().repeat(TEXT_BYTES))
        .collect();
    let mut server = harness.open();
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

    // Each thread's events are in order; the order of the threads is not defined.
    let mut received: HashMap<String, ReceivedThread> = HashMap::new();
    let mut turns = 0;
    while turns < THREADS * TURNS {
        let message = slow.next().await;
        let params = &message["params"];
        let it = received
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
                let full_text = text(&params["item"]["text"]);
                assert!(
                    full_text.starts_with(&it.open),
                    "the deltas begin otherwise"
                );
                it.texts.push(full_text.to_owned());
            }
            Some("turn/completed") => turns += 1,
            _ => {}
        }
    }
    let texts = threads.iter().flat_map(|id| &received[text(id)].texts);
    assert!(texts.eq(&harness.says), "it was told something else");

    // Then it receives live events.
    let named = json!({"threadId": threads[0], "name": "a"});
    quick.request("thread/name/set", named);
    assert_eq!(slow.next().await["method"], "thread/name/updated");
}

/// The events that were received of a thread.
#[derive(Default)]
struct ReceivedThread {
    texts: Vec<String>,
    /// Text of the open item so far.
    open: String,
    last: u64,
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
