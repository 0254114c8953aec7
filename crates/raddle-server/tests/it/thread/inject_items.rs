//! `thread/inject_items`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/inject_items").await;
}

/// The limit is that of a turn's input.
#[tokio::test]
async fn items_that_are_too_long_are_refused() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    for (letters, is_accepted) in [((1 << 20) + 1, false), (1 << 20, true)] {
        let text = "x".repeat(letters);
        let items = json!([{"type": "message", "role": "user", "content": text}]);
        let params = json!({"threadId": thread, "items": items});
        let answer = client.ask("thread/inject_items", params).await;
        assert_eq!(answer.is_ok(), is_accepted);
    }
}
