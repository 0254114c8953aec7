//! `thread/name/set`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/name/set").await;
}

/// Every client receives it, so it is bounded.
#[tokio::test]
async fn a_name_that_is_too_long_is_refused() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    // The last one is accepted; no request follows it, because it causes a notification.
    for (letters, is_accepted) in [(1001, false), (1000, true)] {
        let params = json!({"threadId": thread, "name": "é".repeat(letters)});
        let answer = client.ask("thread/name/set", params).await;
        assert_eq!(answer.is_ok(), is_accepted, "{answer:?}");
    }
}
