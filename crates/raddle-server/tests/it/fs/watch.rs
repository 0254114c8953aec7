//! `fs/watch`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::{StalledClient, TestClient};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/watch").await;
}

async fn watch(client: &mut TestClient, stage: &Stage, name: &str) {
    let params = json!({"watchId": name, "path": stage.path(name)});
    client.ask("fs/watch", params).await.expect("a watch");
}

/// Reads notifications until all these paths of the workspace were told.
async fn told(client: &mut TestClient, stage: &Stage, watch: &str, names: &[&str]) {
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
    let mut client = TestClient::connect(&mut server).await;
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
    let mut client = TestClient::connect(&mut server).await;
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
    let mut client = TestClient::connect(&mut server).await;
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
    let mut client = TestClient::connect(&mut server).await;
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
    let mut first = TestClient::connect(&mut server).await;
    let mut second = TestClient::connect(&mut server).await;
    // The names belong to the connection, so both may use the same one.
    std::fs::create_dir_all(stage.path("w")).unwrap();
    watch(&mut first, &stage, "w").await;
    std::fs::create_dir_all(stage.path("other")).unwrap();
    let params = json!({"watchId": "w", "path": stage.path("other")});
    second.ask("fs/watch", params).await.expect("a watch");
    std::fs::write(stage.path("w/a"), "x").unwrap();
    told(&mut first, &stage, "w", &["w/a"]).await;
    second
        .ask("account/read", json!({}))
        .await
        .expect("the next message is this answer");
}

/// How many watchers this process has asked the system for.
fn instances() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    links
        .filter(|link| link.to_str() == Some("anon_inode:inotify"))
        .count()
}

#[tokio::test]
async fn all_watches_of_a_server_share_one_watcher() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = TestClient::connect(&mut server).await;
        for number in 0..64 {
            let name = format!("folder{}", number % 32);
            std::fs::create_dir_all(stage.path(&name)).unwrap();
            let params = json!({"watchId": number.to_string(), "path": stage.path(&name)});
            client.ask("fs/watch", params).await.expect("a watch");
        }
        let params = json!({"watchId": "one more", "path": stage.workspace});
        let refused = client.ask("fs/watch", params).await.unwrap_err();
        assert_eq!(refused["message"], "a connection may have 64 watches");
        clients.push(client);
    }
    assert_eq!(instances(), 1);
    for client in clients {
        client.leave().await.when_ended().await;
    }
    let given_back = async {
        while instances() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(10);
    tokio::time::timeout(limit, given_back)
        .await
        .expect("it is given back when nobody watches");
}

#[tokio::test]
async fn watches_inside_each_other_go_on_when_one_of_them_ends() {
    let stage = Stage::new();
    let mut server = stage.open();
    let names = ["w", "w/deep", "w/deep/file", "w/deep/er"];
    // Whichever ends, and in whatever order they began.
    for ending in names {
        for reversed in [false, true] {
            let _ = std::fs::remove_dir_all(stage.path("w"));
            std::fs::create_dir_all(stage.path("w/deep/er")).unwrap();
            std::fs::write(stage.path("w/deep/file"), "").unwrap();
            let mut order = names;
            if reversed {
                order.reverse();
            }
            let mut watcher = TestClient::connect(&mut server).await;
            for name in order {
                watch(&mut watcher, &stage, name).await;
            }
            let id = watcher.request("fs/unwatch", json!({"watchId": ending}));
            while watcher.next().await["id"] != id {}

            // In the first round something may have gone unseen, and then the watched path is told.
            for round in 0..2 {
                let new = format!("w/deep/er/new{round}");
                std::fs::create_dir(stage.path(&new)).unwrap();
                std::fs::write(stage.path("w/deep/file"), "x").unwrap();
                let mut missing: BTreeSet<(&str, String)> = [
                    ("w", stage.path(&new)),
                    ("w", stage.path("w/deep/file")),
                    ("w/deep", stage.path(&new)),
                    ("w/deep", stage.path("w/deep/file")),
                    ("w/deep/file", stage.path("w/deep/file")),
                    ("w/deep/er", stage.path(&new)),
                ]
                .into_iter()
                .filter(|(watch, _)| *watch != ending)
                .collect();
                while !missing.is_empty() {
                    let told = watcher.next().await["params"].take();
                    let name = told["watchId"].as_str().unwrap();
                    assert_ne!(name, ending);
                    let paths = told["changedPaths"].as_array().unwrap();
                    let is_told = |path: &String| paths.contains(&json!(path));
                    let unseen = round == 0 && is_told(&stage.path(name));
                    missing.retain(|(watch, path)| *watch != name || !(unseen || is_told(path)));
                }
            }
            watcher.leave().await.when_ended().await;
        }
    }
}

#[tokio::test]
async fn a_folder_by_two_names_is_told_by_each() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut first = TestClient::connect(&mut server).await;
    let mut second = TestClient::connect(&mut server).await;
    std::fs::create_dir_all(stage.path("real/inside")).unwrap();
    std::os::unix::fs::symlink("real", stage.path("link")).unwrap();
    watch(&mut first, &stage, "real").await;
    watch(&mut second, &stage, "link").await;
    for round in 0..3 {
        let name = format!("inside/{round}");
        std::fs::create_dir(stage.path("real").to_owned() + "/" + &name).unwrap();
        told(&mut first, &stage, "real", &[&format!("real/{name}")]).await;
        told(&mut second, &stage, "link", &[&format!("link/{name}")]).await;
    }
}

#[tokio::test]
async fn changes_wait_for_a_client_that_does_not_read() {
    const ROUNDS: usize = 10;
    let stage = Stage::new();
    let mut server = stage.open();
    std::fs::create_dir(stage.path("w")).unwrap();
    // Room for one notification, not for two.
    let mut deaf = StalledClient::connect(&mut server, 1).await;
    deaf.request("fs/watch", json!({"watchId": "w", "path": stage.path("w")}));
    assert_eq!(deaf.take().await[0]["result"]["path"], stage.path("w"));
    let mut other = TestClient::connect(&mut server).await;
    watch(&mut other, &stage, "w").await;
    let folder = |round: usize| format!("w/{round}");
    std::fs::create_dir(stage.path(&folder(0))).unwrap();
    told(&mut other, &stage, "w", &[&folder(0)]).await;
    let first = deaf.take().await;
    assert_eq!(
        first[0]["params"]["changedPaths"],
        json!([stage.path(&folder(0))])
    );

    // The first notification is not written yet, so nothing is queued behind it.
    for round in 1..ROUNDS {
        std::fs::create_dir(stage.path(&folder(round))).unwrap();
        told(&mut other, &stage, "w", &[&folder(round)]).await;
    }
    let queued = deaf.outgoing.queued_bytes();
    assert_eq!(queued, first[0].to_string().len(), "only the first");
    let rest = deaf.take().await;
    assert_eq!(rest.len(), 1, "one notification for all: {rest:?}");
    let all: Vec<String> = (1..ROUNDS)
        .map(|round| stage.path(&folder(round)))
        .collect();
    assert_eq!(rest[0]["params"]["changedPaths"], json!(all));
}

#[tokio::test]
async fn a_name_has_at_most_256_bytes() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = |bytes: usize| json!({"watchId": "x".repeat(bytes), "path": stage.workspace});
    client.ask("fs/watch", params(256)).await.expect("a watch");
    let refused = client.ask("fs/watch", params(257)).await.unwrap_err();
    assert_eq!(
        refused,
        json!({"code": -32600, "message": "watchId has 257 bytes; it may have 256"})
    );
}
