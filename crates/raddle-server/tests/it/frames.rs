//! Frames that are not valid messages.

use bytes::Bytes;
use raddle_rpc::ConnectionLimits;
use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("frames").await;
}

#[tokio::test]
async fn frames_that_are_not_utf8_are_dropped() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for frame in [
        b"\xff\xfe".as_slice(),
        b"\0",
        b"{\"id\":5,\"method\":\"account/read\",\"params\":{},\"x\":\"\xc3\"}",
        b"{\"id\":5,\"method\":\"account/read\xff\",\"params\":{}}",
        b"\xef\xbb\xbf{\"id\":5,\"method\":\"account/read\",\"params\":{}}",
        b" ",
    ] {
        client
            .connection
            .outgoing
            .send(Bytes::copy_from_slice(frame));
    }
    client
        .ask("account/read", json!({}))
        .await
        .expect("the next answer is the next message");
}

#[tokio::test]
async fn an_id_has_at_most_1024_bytes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for (id, usable) in [
        ("x".repeat(1024), true),
        ("x".repeat(1025), false),
        ("é".repeat(512), true),
        ("é".repeat(513), false),
    ] {
        client.send(&json!({"id": id, "method": "account/read", "params": {}}));
        let answer = client.next().await;
        assert_eq!(answer["id"] == id, usable, "{answer}");
        assert_eq!(answer["error"]["code"] == -32600, !usable, "{answer}");
    }
}

#[tokio::test]
async fn a_method_has_at_most_1024_bytes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for (method, code) in [("x".repeat(1024), -32601), ("x".repeat(1025), -32600)] {
        let error = client
            .ask(&method, json!({}))
            .await
            .expect_err("no such method");
        assert_eq!(error["code"], code);
    }
}

#[tokio::test]
async fn a_message_over_the_cap_is_skipped() {
    let harness = Harness::new();
    let mut server = harness.open();
    let limits = ConnectionLimits {
        message_bytes_max: 4096,
        ..ConnectionLimits::default()
    };
    let mut client = TestClient::connect_within(&mut server, limits).await;
    client.send(&json!({"id": 50, "method": "x".repeat(4096), "params": {}}));
    let mut frame = json!({"id": 51, "method": "account/read", "params": {}}).to_string();
    frame.push_str(&" ".repeat(4096 - frame.len()));
    client.connection.outgoing.send(frame.into());
    let answer = client.next().await;
    assert_eq!(answer["id"], 51, "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
}
