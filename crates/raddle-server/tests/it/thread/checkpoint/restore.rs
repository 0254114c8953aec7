//! `thread/checkpoint/restore`.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;

use raddle_core::ports::CheckpointError;
use serde_json::{Value, json};

use crate::checkpoints::ScriptedCheckpoints;
use crate::client::{TestClient, answer, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/checkpoint/restore").await;
}

/// Runs a turn, with a checkpoint `c1` that changes `a.txt` from `old` to `new`. Returns the thread.
async fn turn_with_checkpoint(harness: &Harness, client: &mut TestClient) -> Value {
    let thread = client.start_thread().await;
    let turn = completed_turn(client, &thread).await;
    fs::write(harness.workspace.join("a.txt"), "new\n").unwrap();
    harness.give_checkpoint("c1", turn.as_str(), &[("a.txt", Some("old\n"))]);
    thread
}

/// Runs a turn, and returns its id.
async fn completed_turn(client: &mut TestClient, thread: &Value) -> Value {
    let input = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
    let mut started = client.ask("turn/start", input).await.unwrap();
    while client.next().await["method"] != "turn/completed" {}
    started["turn"]["id"].take()
}

#[tokio::test]
async fn a_repeated_request_restores_once() {
    let mut harness = Harness::new();
    harness.says.push("hello".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = turn_with_checkpoint(&harness, &mut client).await;
    for what in ["files", "both"] {
        let params = json!({
            "threadId": thread, "checkpointId": "c1", "what": what, "clientRequestId": what,
        });
        let first = answer(&mut client, "thread/checkpoint/restore", params.clone()).await;
        // Another program writes the file, which the repeated request must not restore.
        fs::write(harness.workspace.join("a.txt"), "new\n").unwrap();
        let again = answer(&mut client, "thread/checkpoint/restore", params).await;
        assert_eq!(first.unwrap(), again.unwrap(), "{what}");
        assert_eq!(
            fs::read_to_string(harness.workspace.join("a.txt")).unwrap(),
            "new\n",
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_failure_keeps_the_conversation_and_says_why() {
    let text = || "text".to_owned();
    for (failure, code, data) in [
        (
            CheckpointError::OtherFolder("/a".to_owned(), "/b".to_owned()),
            -32600,
            json!({"errorInfo": "other_folder", "folders": ["/a", "/b"]}),
        ),
        (
            CheckpointError::Expired,
            -32600,
            json!({"errorInfo": "checkpoint_expired"}),
        ),
        (
            CheckpointError::Disabled,
            -32600,
            json!({"errorInfo": "checkpoints_disabled"}),
        ),
        (
            CheckpointError::Busy(text()),
            -32001,
            json!({"errorInfo": "files_busy", "retryAfterMs": 1000}),
        ),
        (
            CheckpointError::Failed(text()),
            -32603,
            json!({"errorInfo": "storage"}),
        ),
    ] {
        let mut harness = Harness::new();
        harness.says.push("hello".to_owned());
        let checkpoints = ScriptedCheckpoints::of(&harness).failing(failure.clone());
        let mut server = harness.open_with(checkpoints);
        let mut client = TestClient::connect(&mut server).await;
        let thread = turn_with_checkpoint(&harness, &mut client).await;
        let params = json!({"threadId": thread, "checkpointId": "c1", "what": "both"});
        let refused = client.ask("thread/checkpoint/restore", params).await;
        assert_eq!(
            refused.unwrap_err(),
            json!({"code": code, "message": failure.to_string(), "data": data})
        );
        let turns = client.ask("thread/turns/list", json!({"threadId": thread}));
        let turns = turns.await.unwrap();
        assert_eq!(turns["data"].as_array().unwrap().len(), 1, "{turns}");
    }
}

/// A refused revert leaves the files as they were. If that fails too, the error names the checkpoint
/// of the state before.
#[tokio::test]
async fn a_refused_revert_restores_no_files() {
    // No more reverts are accepted before the thread is compacted.
    const REVERTS_MAX: usize = 255;
    let mut harness = Harness::new();
    harness.says = vec!["hello".to_owned(); REVERTS_MAX + 1];
    let checkpoints = ScriptedCheckpoints::of(&harness);
    let mut server = harness.open_with(checkpoints.clone());
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    for _ in 0..REVERTS_MAX {
        let turn = completed_turn(&mut client, &thread).await;
        let params = json!({"threadId": thread, "beforeTurnId": turn});
        client.ask("thread/revert", params).await.unwrap();
        assert_eq!(client.next().await["method"], "thread/reverted");
    }
    let turn = completed_turn(&mut client, &thread).await;
    let file = harness.workspace.join("a.txt");
    let requests = [
        (
            "thread/checkpoint/restore",
            json!({"threadId": thread, "checkpointId": "c1", "what": "both"}),
        ),
        (
            "thread/revert",
            json!({"threadId": thread, "beforeTurnId": turn, "what": "both"}),
        ),
    ];
    for undo_fails in [false, true] {
        checkpoints.undo_fails.store(undo_fails, Relaxed);
        for (method, params) in &requests {
            fs::write(&file, "new\n").unwrap();
            harness.give_checkpoint("c1", turn.as_str(), &[("a.txt", Some("old\n"))]);
            let refused = client.ask(method, params.clone()).await.unwrap_err();
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains("revert"), "{method}: {refused}");
            let now = fs::read_to_string(&file).unwrap();
            let restored = refused["data"]["restoredCheckpointId"].as_str();
            match undo_fails {
                false => assert_eq!((now.as_str(), restored), ("new\n", None), "{method}"),
                true => {
                    assert_eq!(now, "old\n", "{method}");
                    assert!(restored.is_some_and(|it| it.starts_with("restore-")));
                }
            }
        }
    }
}
