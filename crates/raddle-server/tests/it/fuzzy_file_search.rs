//! `fuzzyFileSearch`

use serde_json::{Value, json};

use crate::client::{NamedPipe, TestClient, id_of};
use crate::disk::{BlockedDisk, in_line, with_one_thread};
use crate::player::Stage;

const SEARCH: &str = "fuzzyFileSearch";

#[tokio::test]
async fn conversation() {
    crate::client::play("fuzzy_file_search").await;
}

fn params(stage: &Stage, root: &str, query: &str, token: Option<&str>) -> Value {
    json!({"query": query, "roots": [stage.path(root)], "cancellationToken": token})
}

fn fill(stage: &Stage, root: &str, files: usize) {
    for number in 0..files {
        let folder = stage.path(&format!("{root}/folder{:02}", number % 50));
        if number < 50 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(format!("{folder}/file{number:04}.rs"), "").unwrap();
    }
}

#[tokio::test]
async fn one_is_found_among_many_and_at_most_fifty_are_told() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    fill(&stage, "w", 5000);
    let found = client
        .ask(SEARCH, params(&stage, "w", "f4321rs", None))
        .await
        .unwrap();
    assert_eq!(found["files"][0]["path"], "folder21/file4321.rs");
    let found = client
        .ask(SEARCH, params(&stage, "w", "file", None))
        .await
        .unwrap();
    let scores: Vec<u64> = found["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["score"].as_u64().unwrap())
        .collect();
    assert_eq!(scores.len(), 50);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

/// A folder with one file to find.
fn quick(stage: &Stage, root: &str) {
    std::fs::create_dir(stage.path(root)).unwrap();
    std::fs::write(stage.path(&format!("{root}/needle")), "").unwrap();
}

#[test]
fn a_newer_search_calls_off_an_older_one_of_the_same_token() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        quick(&stage, "a");
        let typed = params(&stage, "a", "needle", Some("typing"));

        let held = BlockedDisk::new().await;
        let first = client.request(SEARCH, typed.clone());
        in_line(&mut client).await;
        let second = client.request(SEARCH, typed);
        in_line(&mut client).await;
        drop(held);
        let called_off = json!({"id": first, "result": {"files": []}});
        assert_eq!(client.next().await, called_off);
        let answer = client.next().await;
        assert_eq!(id_of(&answer), second);
        assert_eq!(answer["result"]["files"][0]["path"], "needle");
    });
}

#[test]
fn another_token_or_another_client_or_a_refusal_calls_nothing_off() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        quick(&stage, "a");
        let search = |token| params(&stage, "a", "needle", token);

        let held = BlockedDisk::new().await;
        let older = client.request(SEARCH, search(Some("typing")));
        in_line(&mut client).await;
        client.request(SEARCH, search(Some("else")));
        client.request(SEARCH, search(None));
        other.request(SEARCH, search(Some("typing")));
        let long = params(&stage, "a", &"x".repeat(4097), Some("typing"));
        let refused = client.ask(SEARCH, long).await;
        refused.expect_err("too long");
        in_line(&mut other).await;
        drop(held);
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
async fn what_is_too_much_for_one_search_is_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    quick(&stage, "a");
    let mut refused = async |query: usize, roots: usize| {
        let params = json!({"query": "n".repeat(query), "roots": vec![stage.path("a"); roots]});
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
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    quick(&stage, "needles");
    let _pipe = NamedPipe::new(stage.path("needles/.ignore"));
    let root = params(&stage, ".", "needle", None);
    let found = client.ask(SEARCH, root).await.unwrap();
    let files = found["files"].as_array().unwrap().iter();
    let mut paths: Vec<&str> = files.map(|it| it["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    // What it would hide is not known, and so nothing is hidden.
    assert_eq!(paths, ["needles", "needles/.ignore", "needles/needle"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_many_searches_is_never_called_off() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    fill(&stage, "w", 100);
    for _ in 0..20 {
        // Letters as fast as someone can type them.
        let ids: Vec<i64> = (0..20)
            .map(|_| client.request(SEARCH, params(&stage, "w", "file", Some("typing"))))
            .collect();
        for _ in &ids {
            let answer = client.next().await;
            if Some(&id_of(&answer)) == ids.last() {
                assert_eq!(answer["result"]["files"].as_array().map(Vec::len), Some(50));
            }
        }
    }
}
