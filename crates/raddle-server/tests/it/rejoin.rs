//! A client that comes back hears exactly on from what it knows.

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Stage;

/// All that is told of a turn which the model leaves in the middle of a message.
async fn turn_in_the_middle(client: &mut TestClient, thread: &Value) -> Vec<Value> {
    let input = json!([{"type": "text", "text": "hi"}]);
    client.request("turn/start", json!({"threadId": thread, "input": input}));
    let mut told = Vec::new();
    while told
        .last()
        .is_none_or(|it: &Value| it["method"] != "item/agentMessage/delta")
    {
        let message = client.next().await;
        if message.get("method").is_some() {
            told.push(message);
        }
    }
    told
}

/// What was told, without when.
fn words(message: &Value) -> (Value, Value, Value) {
    let member = |name: &str| message.get(name).cloned().unwrap_or_default();
    (member("method"), member("params"), member("seq"))
}

/// Where a client stands that heard so many of these.
fn cursor(heard: &[Value]) -> u64 {
    let mut numbers = heard.iter().rev().filter_map(|it| it["seq"].as_u64());
    numbers.next().unwrap_or(0)
}

#[tokio::test]
async fn whoever_comes_back_in_the_middle_misses_nothing() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let begun = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let thread = &begun["thread"]["id"];
    let mut told = vec![client.next().await];
    told.extend(turn_in_the_middle(&mut client, thread).await);

    let last = told.len();
    for heard in 0..=last {
        let seen = cursor(&told[..heard]);
        let mut other = TestClient::connect(&mut server).await;
        let params = json!({"threadId": thread, "afterSeq": seen});
        let resumed = other.ask("thread/resume", params).await.expect("a thread");
        assert_eq!(resumed["thread"]["turns"], json!([]));
        // What has no number is told again with the number that follows.
        let missed = told
            .iter()
            .rposition(|it| it["seq"] == seen)
            .map_or(0, |at| at + 1);
        for message in &told[missed..] {
            assert_eq!(words(&other.next().await), words(message), "after {seen}");
        }
        // And then it hears live.
        let name = format!("after {heard}");
        client.request("thread/name/set", json!({"threadId": thread, "name": name}));
        let renamed = loop {
            let message = client.next().await;
            if message["method"] == "thread/name/updated" {
                break message;
            }
        };
        assert_eq!(words(&other.next().await), words(&renamed));
        told.push(renamed);
    }
}

#[tokio::test]
async fn who_did_not_ask_for_numbers_gets_none() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = TestClient::connect_plainly(&mut server).await;
    let thread = client.start_thread().await;
    for message in turn_in_the_middle(&mut client, &thread).await {
        assert_eq!(message.get("seq"), None, "{message}");
    }
    let params = json!({"threadId": thread, "afterSeq": 1});
    let error = client.ask("thread/resume", params).await.expect_err("no");
    let what =
        "afterSeq needs the extension raddle/seq; name it in capabilities.extensions of initialize";
    assert_eq!(error["message"], what);
}

/// A number that is none of the thread's is refused, and the client hears no more than it did.
#[tokio::test]
async fn a_number_that_never_was_is_refused() {
    let mut server = Stage::new().open();
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

/// What was told of a thread is another's when it is forked.
#[tokio::test]
async fn a_fork_has_no_numbers_of_the_other_thread() {
    let mut server = Stage::new().open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let named = json!({"threadId": thread, "name": "a"});
    client.ask("thread/name/set", named).await.expect("a name");
    let seen = client.next().await["seq"].clone();
    assert!(seen.is_u64(), "{seen}");
    let fork = client.ask("thread/fork", json!({"threadId": thread})).await;
    let fork = fork.expect("a fork")["thread"]["id"].clone();
    assert_eq!(client.next().await["method"], "thread/started");
    for seen in [json!(0), seen] {
        let params = json!({"threadId": fork, "afterSeq": seen});
        let error = client.ask("thread/resume", params).await.expect_err("no");
        assert_eq!(error["data"]["errorInfo"], "cursorExpired", "after {seen}");
    }
}
