//! `thread/resume`.

use std::sync::Arc;

use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{Client, play};
use crate::player::Stage;
use crate::script;

#[tokio::test]
async fn conversation() {
    play("thread/resume").await;
}

/// Another client that comes in the middle sees everything that is open, and from there on both hear the
/// same.
#[tokio::test]
async fn two_clients_hear_the_same() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    let turn = client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "item/agentMessage/delta" {}

    let mut other = Client::connect(&mut server).await;
    let params = json!({"threadId": thread, "model": "other"});
    let resumed = other.ask("thread/resume", params).await.expect("a thread");
    // Someone is there and a turn runs, so what it wants otherwise does not count.
    assert_eq!(resumed["model"], "");
    assert_eq!(other.next().await["method"], "thread/goal/cleared");
    assert_eq!(other.next().await["method"], "item/started");
    assert_eq!(other.next().await["params"]["delta"], "hel");
    let params = json!({"threadId": thread, "turnId": turn["turn"]["id"]});
    other.request("turn/interrupt", params);
    assert!(other.next().await["result"].is_object());
    for word in ["item/completed", "thread/status/changed", "turn/completed"] {
        let (mine, its) = (client.next().await, other.next().await);
        assert_eq!(mine["method"], word);
        assert_eq!(mine["params"], its["params"]);
        assert_eq!(mine.get("seq"), its.get("seq"));
    }
}

/// A thread of a server that has ended is opened by the next, with what the client wants otherwise.
#[tokio::test]
async fn a_stored_thread_is_opened() {
    let stage = Stage::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says: &'static [&str]| {
        let threads = script::threads_of(journal.clone(), says);
        Server::open(stage.options(), threads).expect("a server")
    };
    let mut first = open(&["hello"]);
    let mut client = Client::connect(&mut first).await;
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "turn/completed" {}
    drop(client);
    first.drain().await;

    let mut second = open(&[]);
    let mut client = Client::connect(&mut second).await;
    let params = json!({"threadId": thread, "model": "other", "sandbox": "danger-full-access"});
    let resumed = client.ask("thread/resume", params).await.expect("a thread");
    assert_eq!(resumed["model"], "other");
    assert_eq!(resumed["sandbox"]["type"], "dangerFullAccess");
    assert_eq!(resumed["thread"]["turns"][0]["items"][1]["text"], "hello");
}
