//! `turn/start`.

use std::sync::Arc;

use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{TestClient, answer, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("turn/start").await;
}

/// Sequence numbers rise, and the last notification of a turn has one.
#[tokio::test]
async fn sequence_numbers_rise() {
    let mut harness = Harness::new();
    harness.says.push("hello".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let result = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": result["thread"]["id"], "input": input});
    client.request("turn/start", params);
    let mut last = 0;
    loop {
        let message = client.next().await;
        if let Some(seq) = message.get("seq").and_then(serde_json::Value::as_u64) {
            assert!(seq > last, "{message} after {last}");
            last = seq;
        }
        if message["method"] == "turn/completed" {
            assert_eq!(message["seq"], last);
            break;
        }
    }
}

/// As in the reference: a client without extensions resumes a stored thread first.
#[tokio::test]
async fn a_thread_that_is_not_loaded_is_not_found_without_extensions() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = || {
        let threads = crate::script::threads_of(journal.clone(), &["hello"]);
        Server::open(harness.options(), threads).expect("a server")
    };
    let mut first = open();
    let mut client = TestClient::connect(&mut first).await;
    let thread = client.start_thread().await;
    let mut second = open();
    let mut client = TestClient::connect_without_extensions(&mut second).await;
    let turn = json!({"threadId": thread, "input": []});
    let error = answer(&mut client, "turn/start", turn.clone()).await;
    let message = format!("thread not found: {}", thread.as_str().expect("an id"));
    assert_eq!(error, Err(json!({"code": -32600, "message": message})));
    let resumed = answer(&mut client, "thread/resume", json!({"threadId": thread})).await;
    assert!(resumed.is_ok(), "{resumed:?}");
    let started = answer(&mut client, "turn/start", turn.clone()).await;
    assert!(started.is_ok(), "{started:?}");
}

/// A subscription ends when its thread is archived, so the client must resume the thread.
#[tokio::test]
async fn an_unarchived_thread_is_not_found_without_extensions() {
    let mut harness = Harness::new();
    harness.says.push("hello".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect_without_extensions(&mut server).await;
    let thread = client.start_thread().await;
    let named = json!({"threadId": thread});
    for method in ["thread/archive", "thread/unarchive"] {
        let done = answer(&mut client, method, named.clone()).await;
        assert!(done.is_ok(), "{method}: {done:?}");
    }
    let turn = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
    let error = answer(&mut client, "turn/start", turn.clone()).await;
    let message = format!("thread not found: {}", thread.as_str().expect("an id"));
    assert_eq!(error, Err(json!({"code": -32600, "message": message})));
    let resumed = answer(&mut client, "thread/resume", named).await;
    assert!(resumed.is_ok(), "{resumed:?}");
    let started = answer(&mut client, "turn/start", turn).await;
    assert!(started.is_ok(), "{started:?}");
    while client.next().await["method"] != "turn/completed" {}
}

/// A client with one of these extensions knows that its turn opens the thread.
#[tokio::test]
async fn a_turn_opens_a_stored_thread_with_extensions() {
    for (extension, opens) in [
        ("raddle/seq", true),
        ("raddle/idempotency", true),
        ("raddle/progress", false),
    ] {
        let mut harness = Harness::new();
        harness.says.push("hello".to_owned());
        let mut server = harness.open();
        let capabilities = json!({"extensions": {(extension): {}}});
        let limits = ConnectionLimits::default();
        let mut client = TestClient::connect_with(&mut server, limits, capabilities).await;
        let thread = client.start_thread().await;
        for method in ["thread/archive", "thread/unarchive"] {
            let done = answer(&mut client, method, json!({"threadId": thread})).await;
            assert!(done.is_ok(), "{method}: {done:?}");
        }
        let turn = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
        let started = answer(&mut client, "turn/start", turn).await;
        assert_eq!(started.is_ok(), opens, "{extension}: {started:?}");
    }
}
