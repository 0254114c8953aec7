//! A client that resumes with `afterSeq` receives exactly the records after it.

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;

/// Starts a turn whose message the model does not finish, and returns its notifications.
async fn start_open_turn(client: &mut TestClient, thread: &Value) -> Vec<Value> {
    let input = json!([{"type": "text", "text": "hi"}]);
    client.request("turn/start", json!({"threadId": thread, "input": input}));
    let mut notifications = Vec::new();
    while notifications
        .last()
        .is_none_or(|it: &Value| it["method"] != "item/agentMessage/delta")
    {
        let message = client.next().await;
        if message.get("method").is_some() {
            notifications.push(message);
        }
    }
    notifications
}

/// Returns a notification without its time.
fn without_time(message: &Value) -> (Value, Value, Value) {
    let member = |name: &str| message.get(name).cloned().unwrap_or_default();
    (member("method"), member("params"), member("seq"))
}

/// Returns the cursor of a client that received these.
fn cursor(received: &[Value]) -> u64 {
    let mut numbers = received.iter().rev().filter_map(|it| it["seq"].as_u64());
    numbers.next().unwrap_or(0)
}

#[tokio::test]
async fn a_client_that_resumes_mid_turn_misses_nothing() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let response = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let thread = &response["thread"]["id"];
    let mut notifications = vec![client.next().await];
    notifications.extend(start_open_turn(&mut client, thread).await);

    let last = notifications.len();
    for received_count in 0..=last {
        let last_seq = cursor(&notifications[..received_count]);
        let mut other = TestClient::connect(&mut server).await;
        let params = json!({"threadId": thread, "afterSeq": last_seq});
        let resumed = other.ask("thread/resume", params).await.expect("a thread");
        assert_eq!(resumed["thread"]["turns"], json!([]));
        // A notification without a sequence number is repeated with the next numbered one.
        let first_missed = notifications
            .iter()
            .rposition(|it| it["seq"] == last_seq)
            .map_or(0, |index| index + 1);
        for message in &notifications[first_missed..] {
            assert_eq!(
                without_time(&other.next().await),
                without_time(message),
                "after {last_seq}"
            );
        }
        // Then it receives live events.
        let name = format!("after {received_count}");
        client.request("thread/name/set", json!({"threadId": thread, "name": name}));
        let renamed = loop {
            let message = client.next().await;
            if message["method"] == "thread/name/updated" {
                break message;
            }
        };
        assert_eq!(without_time(&other.next().await), without_time(&renamed));
        notifications.push(renamed);
    }
}

#[tokio::test]
async fn sequence_numbers_require_the_extension() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect_without_extensions(&mut server).await;
    let thread = client.start_thread().await;
    for message in start_open_turn(&mut client, &thread).await {
        assert_eq!(message.get("seq"), None, "{message}");
    }
    let params = json!({"threadId": thread, "afterSeq": 1});
    let error = client.ask("thread/resume", params).await.expect_err("no");
    let what =
        "afterSeq needs the extension raddle/seq; name it in capabilities.extensions of initialize";
    assert_eq!(error["message"], what);
}

/// An unknown sequence number is rejected, and the client gets no subscription.
#[tokio::test]
async fn an_unknown_sequence_number_is_rejected() {
    let mut server = Harness::new().open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let mut other = TestClient::connect(&mut server).await;
    let params = json!({"threadId": thread, "afterSeq": 1000});
    let error = other.ask("thread/resume", params).await.expect_err("no");
    assert_eq!(error["data"], json!({"errorInfo": "cursorExpired"}));
    let params = json!({"threadId": thread});
    other.ask("thread/resume", params).await.expect("a thread");
    assert_eq!(other.next().await["method"], "thread/goal/cleared");
}

/// The sequence numbers of a thread are not valid in its fork.
#[tokio::test]
async fn sequence_numbers_of_a_thread_are_invalid_in_its_fork() {
    let mut server = Harness::new().open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let named = json!({"threadId": thread, "name": "a"});
    client.ask("thread/name/set", named).await.expect("a name");
    let last_seq = client.next().await["seq"].clone();
    assert!(last_seq.is_u64(), "{last_seq}");
    let fork = client.ask("thread/fork", json!({"threadId": thread})).await;
    let fork = fork.expect("a fork")["thread"]["id"].clone();
    assert_eq!(client.next().await["method"], "thread/started");
    for after_seq in [json!(0), last_seq] {
        let params = json!({"threadId": fork, "afterSeq": after_seq});
        let error = client.ask("thread/resume", params).await.expect_err("no");
        assert_eq!(
            error["data"]["errorInfo"], "cursorExpired",
            "after {after_seq}"
        );
    }
}
