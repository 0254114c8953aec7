//! `thread/inject_items`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/inject_items").await;
}

/// What is said at once is not more than in a turn.
#[tokio::test]
async fn items_that_are_too_long_are_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    for (letters, is_taken) in [((1 << 20) + 1, false), (1 << 20, true)] {
        let text = "x".repeat(letters);
        let items = json!([{"type": "message", "role": "user", "content": text}]);
        let params = json!({"threadId": thread, "items": items});
        let answer = client.ask("thread/inject_items", params).await;
        assert_eq!(answer.is_ok(), is_taken);
    }
}
