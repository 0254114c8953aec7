//! `thread/delete`.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::checkpoints::ScriptedCheckpoints;
use crate::client::{TestClient, play};
use crate::player::Harness;

/// Timeout of a removal. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn conversation() {
    play("thread/delete").await;
}

#[tokio::test]
async fn the_checkpoints_of_a_deleted_thread_are_removed() {
    for params in [json!({}), json!({"clientRequestId": "a"})] {
        let harness = Harness::new();
        let checkpoints = ScriptedCheckpoints::of(&harness);
        let mut server = harness.open_with(checkpoints.clone());
        let mut client = TestClient::connect(&mut server).await;
        let thread = client.start_thread().await;
        harness.give_checkpoint("c1", None, &[("a.txt", None)]);
        let mut params = params;
        params["threadId"] = thread;
        client.ask("thread/delete", params).await.unwrap();
        let forgotten = checkpoints.forgotten.notified();
        timeout(LIMIT, forgotten).await.expect("a removal in time");
        assert!(harness.checkpoints.lock().unwrap().is_empty());
    }
}
