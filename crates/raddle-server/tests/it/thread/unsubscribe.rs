//! `thread/unsubscribe`, and the unloading of threads without subscribers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/unsubscribe").await;
}

const A_MINUTE: Duration = Duration::from_secs(61);

/// Checks the notifications about a thread that is unloaded.
async fn expect_unloaded(client: &mut TestClient, thread: &Value) {
    let status = client.next().await;
    assert_eq!(status["method"], "thread/status/changed");
    let not_loaded = json!({"threadId": thread, "status": {"type": "notLoaded"}});
    assert_eq!(status["params"], not_loaded);
    let closed = client.next().await;
    assert_eq!(closed["method"], "thread/closed");
    assert_eq!(closed["params"], json!({"threadId": thread}));
}

/// An idle thread without subscribers is unloaded after a minute.
#[tokio::test(start_paused = true)]
async fn an_idle_thread_without_subscribers_is_unloaded() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    assert_eq!(other.next().await["method"], "thread/started");
    let params = json!({"threadId": thread});
    let unsubscribed = client.ask("thread/unsubscribe", params.clone()).await;
    assert_eq!(unsubscribed, Ok(json!({"status": "unsubscribed"})));
    tokio::time::sleep(A_MINUTE).await;
    expect_unloaded(&mut client, &thread).await;
    expect_unloaded(&mut other, &thread).await;
    let second = client.ask("thread/unsubscribe", params).await;
    assert_eq!(second, Ok(json!({"status": "notLoaded"})));
}

/// The end of a connection ends its subscriptions, and a running turn keeps its thread in memory.
#[tokio::test(start_paused = true)]
async fn disconnecting_unsubscribes() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut other = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
    let idle = client.start_thread().await;
    let running = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": running, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    client.disconnect().await.when_ended().await;
    for method in ["thread/started", "thread/started", "thread/status/changed"] {
        assert_eq!(other.next().await["method"], method);
    }
    tokio::time::sleep(A_MINUTE).await;
    expect_unloaded(&mut other, &idle).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let params = json!({"threadId": running});
    let status = other.ask("thread/unsubscribe", params).await;
    assert_eq!(status, Ok(json!({"status": "notSubscribed"})));
}
