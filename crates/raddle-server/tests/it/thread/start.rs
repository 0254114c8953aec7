//! `thread/start`.

use std::sync::Arc;
use std::time::Duration;

use raddle_server::Server;
use raddle_store::{FaultMode, FaultyJournal};
use serde_json::json;

use crate::client::{TestClient, play};
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
    let mut other = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
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

#[tokio::test(start_paused = true)]
async fn while_the_journal_is_away_the_caller_is_told_to_try_again() {
    for mood in [FaultMode::Unavailable, FaultMode::Lost, FaultMode::Dropping] {
        let stage = Stage::new();
        let journal = Arc::new(FaultyJournal::new());
        journal.set(mood);
        let threads = crate::script::threads_in(journal.clone(), &[]);
        let mut server = Server::open(stage.options(), threads).expect("a server");
        let mut client = TestClient::connect(&mut server).await;
        let begun = tokio::time::Instant::now();
        let refused = client.ask("thread/start", json!({})).await;
        let refused = refused.expect_err("no journal");
        assert!(begun.elapsed() < Duration::from_secs(6));
        assert_eq!(refused["code"], -32001);
        let data = json!({"errorInfo": "server_overloaded", "retryAfterMs": 1000});
        assert_eq!(refused["data"], data);

        // Back in time, it takes what it was asked for.
        client.request("thread/start", json!({}));
        tokio::time::sleep(Duration::from_secs(2)).await;
        journal.set(FaultMode::Healthy);
        let answer = client.next().await;
        assert!(answer["result"]["thread"]["id"].is_string(), "{answer}");
    }
}
