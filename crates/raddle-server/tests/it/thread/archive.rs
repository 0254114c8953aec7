//! `thread/archive`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/archive").await;
}

/// Every client is notified, and an archived thread can be used again.
#[tokio::test]
async fn other_clients_are_notified_and_the_thread_stays_usable() {
    let mut harness = Harness::new();
    harness.says.push("hello".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    client.request("thread/archive", json!({"threadId": thread}));
    let methods = ["thread/started", "thread/status/changed", "thread/archived"];
    for method in methods {
        let notification = other.next().await;
        assert_eq!(notification["method"], method);
        assert_eq!(
            notification.get("seq"),
            None,
            "only subscribers get numbers"
        );
    }
    // A request during the unloading is handled by the next load of the thread.
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    other.ask("turn/start", params).await.expect("a turn");
}
