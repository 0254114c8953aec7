//! `thread/start`.

use std::sync::Arc;
use std::time::Duration;

use raddle_server::Server;
use raddle_store::{FaultMode, FaultyJournal};
use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/start").await;
}

/// Other clients receive `thread/started`, and no events of the thread.
#[tokio::test]
async fn other_clients_receive_only_thread_started() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut other = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
    let result = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let id = &result["thread"]["id"];
    let notification = other.next().await;
    assert_eq!(notification["method"], "thread/started");
    assert_eq!(notification["params"]["thread"]["id"], *id);
    assert_eq!(
        notification.get("seq"),
        None,
        "only subscribers get numbers"
    );
}

/// As in Codex.
#[tokio::test]
async fn a_relative_folder_is_relative_to_that_of_the_server() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let folder = std::env::current_dir().unwrap();
    for (cwd, expected) in [
        ("src", folder.join("src")),
        ("./tests/it", folder.join("tests/it")),
        (".", folder.clone()),
        ("/", "/".into()),
    ] {
        let started = client.ask("thread/start", json!({ "cwd": cwd })).await;
        let started = started.expect("a thread");
        assert_eq!(started["cwd"], json!(expected), "{cwd}");
        assert_eq!(started["thread"]["cwd"], json!(expected), "{cwd}");
        assert_eq!(client.next().await["method"], "thread/started");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_journal_is_a_retryable_error() {
    for fault in [FaultMode::Unavailable, FaultMode::Lost, FaultMode::Dropping] {
        let harness = Harness::new();
        let journal = Arc::new(FaultyJournal::new());
        journal.set(fault);
        let threads = crate::script::threads_in(journal.clone(), &[]);
        let mut server = Server::open(harness.options(), threads).expect("a server");
        let mut client = TestClient::connect(&mut server).await;
        let started = tokio::time::Instant::now();
        let refused = client.ask("thread/start", json!({})).await;
        let refused = refused.expect_err("no journal");
        assert!(started.elapsed() < Duration::from_secs(6));
        assert_eq!(refused["code"], -32001);
        let data = json!({"errorInfo": "server_overloaded", "retryAfterMs": 1000});
        assert_eq!(refused["data"], data);

        // If the journal returns in time, the request succeeds.
        client.request("thread/start", json!({}));
        tokio::time::sleep(Duration::from_secs(2)).await;
        journal.set(FaultMode::Healthy);
        let answer = client.next().await;
        assert!(answer["result"]["thread"]["id"].is_string(), "{answer}");
    }
}
