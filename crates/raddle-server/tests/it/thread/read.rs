//! `thread/read`.

use std::sync::Arc;

use raddle_core::ThreadId;
use raddle_core::ports::Journal;
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::{Value, json};

use crate::client::{TestClient, play};
use crate::player::Harness;
use crate::script::threads_of;

#[tokio::test]
async fn conversation() {
    play("thread/read").await;
}

/// Starts a turn and reads on until a message of this method.
async fn turn(client: &mut TestClient, thread: &Value, until: &str) {
    let input = json!([{"type": "text", "text": "hi"}]);
    client.request("turn/start", json!({"threadId": thread, "input": input}));
    while client.next().await["method"] != until {}
}

async fn read(client: &mut TestClient, thread: &Value) -> Value {
    let params = json!({"threadId": thread, "includeTurns": true});
    let mut result = client.ask("thread/read", params).await.expect("a thread");
    result["thread"].take()
}

/// A server that does not own the thread reads what is stored, does not open the thread and gets no
/// events.
#[tokio::test]
async fn a_thread_of_another_server_is_only_read() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says| Server::open(harness.options(), threads_of(journal.clone(), says));
    let mut server = open(&["one", "two…"]).expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let id = client.start_thread().await;
    turn(&mut client, &id, "turn/completed").await;

    let mut other = open(&[]).expect("a server");
    let mut reader = TestClient::connect(&mut other).await;
    let thread: ThreadId = id.as_str().unwrap().parse().unwrap();
    let head = journal.head(thread).await;
    let thread_view = read(&mut reader, &id).await;
    assert_eq!(thread_view["status"], json!({"type": "notLoaded"}));
    assert_eq!(thread_view["turns"][0]["items"][1]["text"], "one");
    let list = reader.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(list["data"][0]["id"], id);
    assert_eq!(list["data"][0]["status"], json!({"type": "notLoaded"}));
    let loaded = reader.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded.expect("a list")["data"], json!([]));
    assert_eq!(journal.head(thread).await, head);

    // Its owner continues undisturbed. Its running turn counts as interrupted here: no other
    // process is known to be alive.
    turn(&mut client, &id, "item/agentMessage/delta").await;
    let thread_view = read(&mut reader, &id).await;
    let turn = &thread_view["turns"][1];
    assert_eq!(
        (&turn["status"], &turn["completedAt"]),
        (&json!("interrupted"), &Value::Null)
    );
    let params = json!({"threadId": id, "itemsView": "full"});
    let page = reader.ask("thread/turns/list", params).await;
    assert_eq!(page.expect("a page")["data"][0], *turn);
}

/// A running turn is shown with its open items and their present text, by both methods.
#[tokio::test]
async fn a_running_turn_is_shown_with_its_open_items() {
    let mut harness = Harness::new();
    harness.says.push("half of it…".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut reader = TestClient::connect(&mut server).await;
    let id = client.start_thread().await;
    turn(&mut client, &id, "item/agentMessage/delta").await;
    for method in ["thread/started", "thread/status/changed"] {
        assert_eq!(reader.next().await["method"], method);
    }
    let thread_view = read(&mut reader, &id).await;
    assert_eq!(
        thread_view["status"],
        json!({"type": "active", "activeFlags": []})
    );
    let turn = &thread_view["turns"][0];
    assert_eq!(
        (&turn["status"], &turn["itemsView"]),
        (&json!("inProgress"), &json!("full"))
    );
    assert_eq!(turn["items"][0]["type"], "userMessage");
    assert_eq!(turn["items"][1]["text"], "half of it");
    assert_eq!(turn["items"][1]["completedAtMs"], Value::Null);
    let params = json!({"threadId": id, "itemsView": "full"});
    let page = reader.ask("thread/turns/list", params).await;
    assert_eq!(page.expect("a page")["data"][0], *turn);
    // Only completed items are listed by themselves.
    let items = reader
        .ask("thread/items/list", json!({"threadId": id}))
        .await;
    let items = items.expect("a page");
    assert_eq!(items["data"].as_array().map(Vec::len), Some(1));
    let list = reader.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(list["data"][0]["status"]["type"], "active");
}

/// A response holds the newest turns, as many as fit; the others are on pages.
#[tokio::test]
async fn a_long_thread_is_shown_by_its_end() {
    let mut harness = Harness::new();
    let long = "0123456789abcdef".repeat(3 << 16);
    harness.says = vec![long; 4];
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let id = client.start_thread().await;
    for _ in 0..4 {
        turn(&mut client, &id, "turn/completed").await;
    }
    let thread_view = read(&mut client, &id).await;
    let turns = thread_view["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    let assert_complete = |turn: &Value| {
        assert_eq!(turn["itemsView"], "full");
        assert_eq!(turn["items"].as_array().map(Vec::len), Some(2));
    };
    turns.iter().for_each(assert_complete);

    let mut turn_ids = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = json!({"threadId": id, "itemsView": "full", "cursor": cursor});
        let mut page = client.ask("thread/turns/list", params).await.unwrap();
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= 2);
        data.iter().for_each(assert_complete);
        turn_ids.extend(data.iter().map(|turn| turn["id"].clone()));
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(turn_ids.len(), 4);
    assert_eq!(
        turn_ids[..2],
        [turns[1]["id"].clone(), turns[0]["id"].clone()]
    );
}
