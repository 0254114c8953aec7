//! `thread/start`.

use serde_json::json;

use crate::client::{Client, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/start").await;
}

/// Other clients hear that there is a thread, and nothing of what happens in it.
#[tokio::test]
async fn others_hear_of_it() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut other = Client::connect(&mut server).await;
    let mut client = Client::connect(&mut server).await;
    let result = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let id = &result["thread"]["id"];
    let heard = other.next().await;
    assert_eq!(heard["method"], "thread/started");
    assert_eq!(heard["params"]["thread"]["id"], *id);
    assert_eq!(heard.get("seq"), None, "only subscribers get numbers");
}
