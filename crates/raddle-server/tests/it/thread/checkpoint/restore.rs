//! `thread/checkpoint/restore`.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use raddle_core::ports::CheckpointError;
use raddle_server::{AgentParts, Server};
use raddle_store::{FaultMode, FaultyJournal};
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

/// A revert that is not stored leaves the files as they were. If that fails too, the error names the
/// checkpoint of the state before.
#[tokio::test]
async fn a_refused_revert_restores_no_files() {
    let harness = Harness::new();
    let checkpoints = ScriptedCheckpoints::of(&harness);
    let journal = Arc::new(FaultyJournal::new());
    let threads = crate::script::with_pages(journal.clone(), journal.clone(), &["hello"]);
    let parts = |deps| AgentParts {
        checkpoints: Arc::new(checkpoints.clone()),
        ..AgentParts::from(threads(deps))
    };
    let mut server = Server::open(harness.options(), parts).unwrap();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
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
            // The failure of the last request has unloaded the thread.
            let resumed = answer(&mut client, "thread/resume", json!({"threadId": thread}));
            resumed.await.unwrap();
            let given = || harness.checkpoints.lock().unwrap().len();
            let before = given();
            journal.set(FaultMode::ReadOnly);
            let refused = answer(&mut client, method, params.clone()).await;
            let refused = refused.unwrap_err();
            journal.set(FaultMode::Healthy);
            let restores = given() - before;
            assert_eq!(restores, if undo_fails { 1 } else { 2 }, "{refused}");
            let now = fs::read_to_string(&file).unwrap();
            let restored = refused["data"]["restoredCheckpointId"].as_str();
            match undo_fails {
                false => assert_eq!((now.as_str(), restored), ("new\n", None), "{refused}"),
                true => {
                    assert_eq!(now, "old\n", "{method}: {refused}");
                    let is_named = restored.is_some_and(|it| it.starts_with("restore-"));
                    assert!(is_named, "{method}: {refused}");
                }
            }
        }
    }
    let turns = answer(
        &mut client,
        "thread/turns/list",
        json!({"threadId": thread}),
    );
    let turns = turns.await.unwrap();
    assert_eq!(turns["data"].as_array().unwrap().len(), 1, "{turns}");
}
