//! `fuzzyFileSearch`

use serde_json::{Value, json};

use crate::client::{Client, Pipe, id_of};
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
    let mut client = Client::connect(&mut server).await;
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

/// A folder in which a search waits until it is let go: a walk reads `.ignore` first.
fn slow(stage: &Stage, root: &str) -> Pipe {
    quick(stage, root);
    Pipe::new(stage.path(&format!("{root}/.ignore")))
}

/// A folder with one file to find.
fn quick(stage: &Stage, root: &str) {
    std::fs::create_dir(stage.path(root)).unwrap();
    std::fs::write(stage.path(&format!("{root}/needle")), "").unwrap();
}

#[tokio::test]
async fn a_newer_search_calls_off_an_older_one_of_the_same_token() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let pipes = [slow(&stage, "a"), slow(&stage, "b")];
    quick(&stage, "c");
    let typed = |root: &str| params(&stage, root, "needle", Some("typing"));

    let first = client.request(SEARCH, typed("a"));
    let in_first = pipes[0].open().await;
    let second = client.request(SEARCH, typed("b"));
    let in_second = pipes[1].open().await;
    drop(in_first);
    let called_off = |id: i64| json!({"id": id, "result": {"files": []}});
    assert_eq!(client.next().await, called_off(first));
    let third = client.ask(SEARCH, typed("c")).await.unwrap();
    assert_eq!(third["files"][0]["path"], "needle");
    drop(in_second);
    assert_eq!(client.next().await, called_off(second));
}

#[tokio::test]
async fn another_token_or_another_client_calls_nothing_off() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let mut other = Client::connect(&mut server).await;
    let pipe = slow(&stage, "slow");
    quick(&stage, "quick");
    let search = |root: &str, token| params(&stage, root, "needle", token);

    let older = client.request(SEARCH, search("slow", Some("typing")));
    let waiting = pipe.open().await;
    for token in [Some("else"), None] {
        let found = client.ask(SEARCH, search("quick", token)).await;
        found.expect("a search");
    }
    let found = other.ask(SEARCH, search("quick", Some("typing"))).await;
    found.expect("a search");
    drop(waiting);
    let answer = client.next().await;
    assert_eq!(id_of(&answer), older);
    assert_eq!(answer["result"]["files"][0]["path"], "needle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_many_searches_is_never_called_off() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
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
