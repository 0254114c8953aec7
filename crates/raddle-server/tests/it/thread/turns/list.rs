//! `thread/turns/list`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/turns/list").await;
}

/// An ephemeral thread has pages only in this process, while it is in memory.
#[tokio::test]
async fn an_ephemeral_thread_has_pages_in_memory() {
    let mut harness = Harness::new();
    harness.says.push("hello".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = json!({"ephemeral": true});
    let response = client.ask("thread/start", params).await.expect("a thread");
    let id = &response["thread"]["id"];
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
