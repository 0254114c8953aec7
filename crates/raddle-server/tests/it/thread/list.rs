//! `thread/list`.

use serde_json::{Value, json};

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/list").await;
}

/// Limits are clamped to their range, and filters are bounded.
#[tokio::test]
async fn limits() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for number in 0..101 {
        let thread = client.start_thread().await;
        let name = json!({"threadId": thread, "name": number.to_string()});
        client.ask("thread/name/set", name).await.expect("a name");
        assert_eq!(client.next().await["method"], "thread/name/updated");
    }
    for (limit, count) in [
        (json!(null), 25),
        (json!(0), 1),
        (json!(30), 30),
        (json!(4_000_000_000_u32), 100),
    ] {
        let page = client.ask("thread/list", json!({"limit": limit})).await;
        let page = page.expect("a page");
        assert_eq!(
            page["data"].as_array().map(Vec::len),
            Some(count),
            "{limit}"
        );
        assert!(page["nextCursor"].is_string());
    }
    let ids = vec!["019a0000-0000-7000-8000-000000000001"; 101];
    for (params, message) in [
        (
            json!({"excludedThreadIds": ids}),
            "excludedThreadIds names more than 100; ask for fewer at a time",
        ),
        (
            json!({"cwd": vec!["/w"; 65]}),
            "cwd names more than 64; ask for fewer at a time",
        ),
    ] {
        let refused: Value = client
            .ask("thread/list", params)
            .await
            .expect_err("too many");
        assert_eq!(
            (&refused["code"], &refused["message"]),
            (&json!(-32600), &json!(message))
        );
    }
}
