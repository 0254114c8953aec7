//! `fuzzyFileSearch`

mod session_start;
mod session_stop;
mod session_update;

use serde_json::{Value, json};

use crate::client::{NamedPipe, TestClient, id_of};
use crate::disk::{BlockedDisk, wait_until_queued, with_one_thread};
use crate::player::Harness;

const SEARCH: &str = "fuzzyFileSearch";

#[tokio::test]
async fn conversation() {
    crate::client::play("fuzzy_file_search").await;
}

fn params(harness: &Harness, root: &str, query: &str, token: Option<&str>) -> Value {
    json!({"query": query, "roots": [harness.path(root)], "cancellationToken": token})
}

fn fill(harness: &Harness, root: &str, files: usize) {
    for number in 0..files {
        let folder = harness.path(&format!("{root}/folder{:02}", number % 50));
        if number < 50 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(format!("{folder}/file{number:04}.rs"), "").unwrap();
    }
}

#[tokio::test]
async fn at_most_fifty_matches_are_returned() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    fill(&harness, "w", 5000);
    let response = client
        .ask(SEARCH, params(&harness, "w", "f4321rs", None))
        .await
        .unwrap();
    assert_eq!(response["files"][0]["path"], "folder21/file4321.rs");
    let response = client
        .ask(SEARCH, params(&harness, "w", "file", None))
        .await
        .unwrap();
    let scores: Vec<u64> = response["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["score"].as_u64().unwrap())
        .collect();
    assert_eq!(scores.len(), 50);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

/// Creates a folder with one file to find.
fn needle_folder(harness: &Harness, root: &str) {
    std::fs::create_dir(harness.path(root)).unwrap();
    std::fs::write(harness.path(&format!("{root}/needle")), "").unwrap();
}

#[test]
fn a_newer_search_cancels_an_older_one_with_the_same_token() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        needle_folder(&harness, "a");
        let search = params(&harness, "a", "needle", Some("typing"));

        let blocked = BlockedDisk::new().await;
        let first = client.request(SEARCH, search.clone());
        wait_until_queued(&mut client).await;
        let second = client.request(SEARCH, search);
        wait_until_queued(&mut client).await;
        drop(blocked);
        let cancelled = json!({"id": first, "result": {"files": []}});
        assert_eq!(client.next().await, cancelled);
        let answer = client.next().await;
        assert_eq!(id_of(&answer), second);
        assert_eq!(answer["result"]["files"][0]["path"], "needle");
    });
}

#[test]
fn other_tokens_other_clients_and_rejections_cancel_nothing() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        needle_folder(&harness, "a");
        let search = |token| params(&harness, "a", "needle", token);

        let blocked = BlockedDisk::new().await;
        let older = client.request(SEARCH, search(Some("typing")));
        wait_until_queued(&mut client).await;
        client.request(SEARCH, search(Some("else")));
        client.request(SEARCH, search(None));
        other.request(SEARCH, search(Some("typing")));
        let long = params(&harness, "a", &"x".repeat(4097), Some("typing"));
        let refused = client.ask(SEARCH, long).await;
        refused.expect_err("too long");
        wait_until_queued(&mut other).await;
        drop(blocked);
        let answer = client.next().await;
        assert_eq!(id_of(&answer), older);
        for answer in [
            answer,
            client.next().await,
            client.next().await,
            other.next().await,
        ] {
            assert_eq!(answer["result"]["files"][0]["path"], "needle");
        }
    });
}

#[tokio::test]
async fn a_search_beyond_the_limits_is_rejected() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    needle_folder(&harness, "a");
    let mut refused = async |query: usize, roots: usize| {
        let params = json!({"query": "n".repeat(query), "roots": vec![harness.path("a"); roots]});
        let error = client.ask(SEARCH, params).await.err()?;
        assert_eq!(error["code"], -32600);
        Some(error["message"].clone())
    };
    assert_eq!(refused(4096, 64).await, None);
    let message = "query is longer than 4096 bytes";
    assert_eq!(refused(4097, 1).await, Some(message.into()));
    let message = "roots has more than 64 folders";
    assert_eq!(refused(1, 65).await, Some(message.into()));
}

#[tokio::test]
async fn a_search_does_not_wait_at_a_pipe() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    needle_folder(&harness, "needles");
    let _pipe = NamedPipe::new(harness.path("needles/.ignore"));
    let root = params(&harness, ".", "needle", None);
    let response = client.ask(SEARCH, root).await.unwrap();
    let files = response["files"].as_array().unwrap().iter();
    let mut paths: Vec<&str> = files.map(|it| it["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    // It is unknown which files it would ignore, so none is hidden.
    assert_eq!(paths, ["needles", "needles/.ignore", "needles/needle"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_many_searches_is_never_cancelled() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    fill(&harness, "w", 100);
    for _ in 0..20 {
        // As if a user typed letters quickly.
        let ids: Vec<i64> = (0..20)
            .map(|_| client.request(SEARCH, params(&harness, "w", "file", Some("typing"))))
            .collect();
        for _ in &ids {
            let answer = client.next().await;
            if Some(&id_of(&answer)) == ids.last() {
                assert_eq!(answer["result"]["files"].as_array().map(Vec::len), Some(50));
            }
        }
    }
}
