//! `thread/archive`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/archive").await;
}

/// Everyone hears of it, and a thread that was put away can be used again.
#[tokio::test]
async fn others_hear_of_it_and_the_thread_is_still_there() {
    let mut stage = Stage::new();
    stage.says.push("hello".to_owned());
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    client.request("thread/archive", json!({"threadId": thread}));
    let words = ["thread/started", "thread/status/changed", "thread/archived"];
    for word in words {
        let heard = other.next().await;
        assert_eq!(heard["method"], word);
        assert_eq!(heard.get("seq"), None, "only subscribers get numbers");
    }
    // What comes while the thread is being left is for whoever opens it next.
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    other.ask("turn/start", params).await.expect("a turn");
}
