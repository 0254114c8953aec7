//! `turn/start`.

use serde_json::json;

use crate::client::{TestClient, play};
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
