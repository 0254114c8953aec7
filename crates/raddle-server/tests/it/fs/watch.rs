//! `fs/watch`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::Client;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/watch").await;
}

async fn watch(client: &mut Client, stage: &Stage, name: &str) {
    let params = json!({"watchId": name, "path": stage.path(name)});
    client.ask("fs/watch", params).await.expect("a watch");
}

/// Reads notifications until all these paths of the workspace were told.
async fn told(client: &mut Client, stage: &Stage, watch: &str, names: &[&str]) {
    let mut missing: BTreeSet<String> = names.iter().map(|name| stage.path(name)).collect();
    while !missing.is_empty() {
        let message = client.next().await;
        assert_eq!(message["method"], "fs/changed", "{message}");
        assert_eq!(message["params"]["watchId"], watch, "{message}");
        assert!(message["emittedAtMs"].is_i64(), "{message}");
        for path in message["params"]["changedPaths"].as_array().unwrap() {
            missing.remove(path.as_str().unwrap());
        }
    }
}

#[tokio::test]
async fn files_written_renamed_and_removed_are_told() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    std::fs::create_dir_all(stage.path("w/deep")).unwrap();
    watch(&mut client, &stage, "w").await;
    std::fs::write(stage.path("w/a"), "x").unwrap();
    std::fs::write(stage.path("w/deep/b"), "x").unwrap();
    told(&mut client, &stage, "w", &["w/a", "w/deep/b"]).await;
    std::fs::rename(stage.path("w/a"), stage.path("w/c")).unwrap();
    told(&mut client, &stage, "w", &["w/a", "w/c"]).await;
    std::fs::remove_file(stage.path("w/c")).unwrap();
    told(&mut client, &stage, "w", &["w/c"]).await;
}

#[tokio::test]
async fn a_file_is_followed_when_it_is_replaced() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    std::fs::write(stage.path("w"), "old").unwrap();
    watch(&mut client, &stage, "w").await;
    for text in ["one", "two", "three"] {
        // This is how editors save.
        std::fs::write(stage.path("w.tmp"), text).unwrap();
        std::fs::rename(stage.path("w.tmp"), stage.path("w")).unwrap();
        told(&mut client, &stage, "w", &["w"]).await;
    }
    std::fs::remove_file(stage.path("w")).unwrap();
    told(&mut client, &stage, "w", &["w"]).await;
}

#[tokio::test]
async fn a_folder_is_followed_when_it_is_made_again() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    // Neither the folder nor the one above it is there yet.
    watch(&mut client, &stage, "above/w").await;
    for _ in 0..3 {
        std::fs::create_dir_all(stage.path("above/w")).unwrap();
        told(&mut client, &stage, "above/w", &["above/w"]).await;
        std::fs::write(stage.path("above/w/file"), "x").unwrap();
        told(&mut client, &stage, "above/w", &["above/w/file"]).await;
        std::fs::remove_dir_all(stage.path("above")).unwrap();
        told(&mut client, &stage, "above/w", &["above/w"]).await;
    }
}

#[tokio::test]
async fn a_file_that_never_rests_is_told() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let mut file = std::fs::File::create(stage.path("log")).unwrap();
    watch(&mut client, &stage, "log").await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let done = done.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"line\n").unwrap();
                std::thread::yield_now();
            }
        }
    });
    let message = client.next_or_end();
    let message = std::panic::AssertUnwindSafe(message).await;
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(
        message.unwrap()["params"]["changedPaths"],
        json!([stage.path("log")])
    );
}

#[tokio::test]
async fn only_the_connection_that_watches_is_told() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut first = Client::connect(&mut server).await;
    let mut second = Client::connect(&mut server).await;
    // The names belong to the connection, so both may use the same one.
    std::fs::create_dir_all(stage.path("w")).unwrap();
    watch(&mut first, &stage, "w").await;
    let params = json!({"watchId": "w", "path": stage.home});
    second.ask("fs/watch", params).await.expect("a watch");
    std::fs::write(stage.path("w/a"), "x").unwrap();
    told(&mut first, &stage, "w", &["w/a"]).await;
    second
        .ask("account/read", json!({}))
        .await
        .expect("the next message is this answer");
}
