//! `thread/turns/list`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/turns/list").await;
}

/// What lives in memory only has pages as long as it is there, and only here.
#[tokio::test]
async fn of_an_ephemeral_thread() {
    let mut stage = Stage::new();
    stage.says.push("hello".to_owned());
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = json!({"ephemeral": true});
    let begun = client.ask("thread/start", params).await.expect("a thread");
    let id = &begun["thread"]["id"];
    client.request("turn/start", json!({"threadId": id, "input": []}));
    while client.next().await["method"] != "turn/completed" {}
    let page = client
        .ask("thread/turns/list", json!({"threadId": id}))
        .await;
    let page = page.expect("a page");
    assert_eq!(page["data"][0]["items"][1]["text"], "hello");
    let items = client
        .ask("thread/items/list", json!({"threadId": id}))
        .await;
    assert_eq!(
        items.expect("a page")["data"].as_array().map(Vec::len),
        Some(2)
    );
}
