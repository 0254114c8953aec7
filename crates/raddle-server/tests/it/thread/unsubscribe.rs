//! `thread/unsubscribe`, and what follows when nobody is left.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{TestClient, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/unsubscribe").await;
}

const A_MINUTE: Duration = Duration::from_secs(61);

/// What a client hears of a thread that leaves memory.
async fn hears_it_leave(client: &mut TestClient, thread: &Value) {
    let status = client.next().await;
    assert_eq!(status["method"], "thread/status/changed");
    let left = json!({"threadId": thread, "status": {"type": "notLoaded"}});
    assert_eq!(status["params"], left);
    let closed = client.next().await;
    assert_eq!(closed["method"], "thread/closed");
    assert_eq!(closed["params"], json!({"threadId": thread}));
}

/// A thread in which nothing happens and of which nobody hears leaves memory after a minute.
#[tokio::test(start_paused = true)]
async fn a_thread_nobody_needs_leaves_memory() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    assert_eq!(other.next().await["method"], "thread/started");
    let params = json!({"threadId": thread});
    let left = client.ask("thread/unsubscribe", params.clone()).await;
    assert_eq!(left, Ok(json!({"status": "unsubscribed"})));
    tokio::time::sleep(A_MINUTE).await;
    hears_it_leave(&mut client, &thread).await;
    hears_it_leave(&mut other, &thread).await;
    let gone = client.ask("thread/unsubscribe", params).await;
    assert_eq!(gone, Ok(json!({"status": "notLoaded"})));
}

/// A connection that ends hears no more of any thread, and what runs keeps its thread in memory.
#[tokio::test(start_paused = true)]
async fn to_leave_is_to_unsubscribe() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut other = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
    let idle = client.start_thread().await;
    let runs = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": runs, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    client.leave().await.when_ended().await;
    for word in ["thread/started", "thread/started", "thread/status/changed"] {
        assert_eq!(other.next().await["method"], word);
    }
    tokio::time::sleep(A_MINUTE).await;
    hears_it_leave(&mut other, &idle).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let params = json!({"threadId": runs});
    let still = other.ask("thread/unsubscribe", params).await;
    assert_eq!(still, Ok(json!({"status": "notSubscribed"})));
}
