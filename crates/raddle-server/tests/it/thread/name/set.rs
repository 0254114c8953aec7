//! `thread/name/set`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/name/set").await;
}

/// Everyone is told of it, so it has a bound.
#[tokio::test]
async fn a_name_that_is_too_long_is_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    // The last one is taken; nothing is asked after it, because everyone hears of it.
    for (letters, is_taken) in [(1001, false), (1000, true)] {
        let params = json!({"threadId": thread, "name": "é".repeat(letters)});
        let answer = client.ask("thread/name/set", params).await;
        assert_eq!(answer.is_ok(), is_taken, "{answer:?}");
    }
}
