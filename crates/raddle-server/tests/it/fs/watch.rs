//! `fs/watch`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::{StalledClient, TestClient};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/watch").await;
}

async fn watch(client: &mut TestClient, harness: &Harness, name: &str) {
    let params = json!({"watchId": name, "path": harness.path(name)});
    client.ask("fs/watch", params).await.expect("a watch");
}

/// Reads notifications until all these paths of the workspace were reported.
async fn wait_for_changes(client: &mut TestClient, harness: &Harness, watch: &str, names: &[&str]) {
    let mut missing: BTreeSet<String> = names.iter().map(|name| harness.path(name)).collect();
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
async fn writes_renames_and_removals_are_reported() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir_all(harness.path("w/deep")).unwrap();
    watch(&mut client, &harness, "w").await;
    std::fs::write(harness.path("w/a"), "x").unwrap();
    std::fs::write(harness.path("w/deep/b"), "x").unwrap();
    wait_for_changes(&mut client, &harness, "w", &["w/a", "w/deep/b"]).await;
    std::fs::rename(harness.path("w/a"), harness.path("w/c")).unwrap();
    wait_for_changes(&mut client, &harness, "w", &["w/a", "w/c"]).await;
    std::fs::remove_file(harness.path("w/c")).unwrap();
    wait_for_changes(&mut client, &harness, "w", &["w/c"]).await;
}

#[tokio::test]
async fn a_file_is_followed_when_it_is_replaced() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::write(harness.path("w"), "old").unwrap();
    watch(&mut client, &harness, "w").await;
    for text in ["one", "two", "three"] {
        // Editors save like this.
        std::fs::write(harness.path("w.tmp"), text).unwrap();
        std::fs::rename(harness.path("w.tmp"), harness.path("w")).unwrap();
        wait_for_changes(&mut client, &harness, "w", &["w"]).await;
    }
    std::fs::remove_file(harness.path("w")).unwrap();
    wait_for_changes(&mut client, &harness, "w", &["w"]).await;
}

#[tokio::test]
async fn a_folder_is_followed_when_it_is_made_again() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    // Neither the folder nor its parent exists yet.
    watch(&mut client, &harness, "above/w").await;
    for _ in 0..3 {
        std::fs::create_dir_all(harness.path("above/w")).unwrap();
        wait_for_changes(&mut client, &harness, "above/w", &["above/w"]).await;
        std::fs::write(harness.path("above/w/file"), "x").unwrap();
        wait_for_changes(&mut client, &harness, "above/w", &["above/w/file"]).await;
        std::fs::remove_dir_all(harness.path("above")).unwrap();
        wait_for_changes(&mut client, &harness, "above/w", &["above/w"]).await;
    }
}

#[tokio::test]
async fn a_file_that_changes_all_the_time_is_reported() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut file = std::fs::File::create(harness.path("log")).unwrap();
    watch(&mut client, &harness, "log").await;
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
        json!([harness.path("log")])
    );
}

#[tokio::test]
async fn only_the_watching_connection_is_notified() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut first = TestClient::connect(&mut server).await;
    let mut second = TestClient::connect(&mut server).await;
    // The names belong to the connection, so both may use the same one.
    std::fs::create_dir_all(harness.path("w")).unwrap();
    watch(&mut first, &harness, "w").await;
    std::fs::create_dir_all(harness.path("other")).unwrap();
    let params = json!({"watchId": "w", "path": harness.path("other")});
    second.ask("fs/watch", params).await.expect("a watch");
    std::fs::write(harness.path("w/a"), "x").unwrap();
    wait_for_changes(&mut first, &harness, "w", &["w/a"]).await;
    second
        .ask("account/read", json!({}))
        .await
        .expect("the next message is this answer");
}

/// Returns the number of inotify instances of this process.
fn instances() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    links
        .filter(|link| link.to_str() == Some("anon_inode:inotify"))
        .count()
}

#[tokio::test]
async fn all_watches_of_a_server_share_one_watcher() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = TestClient::connect(&mut server).await;
        for number in 0..64 {
            let name = format!("folder{}", number % 32);
            std::fs::create_dir_all(harness.path(&name)).unwrap();
            let params = json!({"watchId": number.to_string(), "path": harness.path(&name)});
            client.ask("fs/watch", params).await.expect("a watch");
        }
        let params = json!({"watchId": "one more", "path": harness.workspace});
        let refused = client.ask("fs/watch", params).await.unwrap_err();
        assert_eq!(refused["message"], "a connection may have 64 watches");
        clients.push(client);
    }
    assert_eq!(instances(), 1);
    for client in clients {
        client.disconnect().await.when_ended().await;
    }
    let released = async {
        while instances() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(10);
    tokio::time::timeout(limit, released)
        .await
        .expect("it is given back when nobody watches");
}

#[tokio::test]
async fn watches_inside_each_other_go_on_when_one_of_them_ends() {
    let harness = Harness::new();
    let mut server = harness.open();
    let names = ["w", "w/deep", "w/deep/file", "w/deep/er"];
    // For each watch that ends, and in either order of their start.
    for ending in names {
        for reversed in [false, true] {
            let _ = std::fs::remove_dir_all(harness.path("w"));
            std::fs::create_dir_all(harness.path("w/deep/er")).unwrap();
            std::fs::write(harness.path("w/deep/file"), "").unwrap();
            let mut order = names;
            if reversed {
                order.reverse();
            }
            let mut watcher = TestClient::connect(&mut server).await;
            for name in order {
                watch(&mut watcher, &harness, name).await;
            }
            let id = watcher.request("fs/unwatch", json!({"watchId": ending}));
            while watcher.next().await["id"] != id {}

            // In the first round a change may have been missed, and then the watched path is
            // reported.
            for round in 0..2 {
                let new = format!("w/deep/er/new{round}");
                std::fs::create_dir(harness.path(&new)).unwrap();
                std::fs::write(harness.path("w/deep/file"), "x").unwrap();
                let mut missing: BTreeSet<(&str, String)> = [
                    ("w", harness.path(&new)),
                    ("w", harness.path("w/deep/file")),
                    ("w/deep", harness.path(&new)),
                    ("w/deep", harness.path("w/deep/file")),
                    ("w/deep/file", harness.path("w/deep/file")),
                    ("w/deep/er", harness.path(&new)),
                ]
                .into_iter()
                .filter(|(watch, _)| *watch != ending)
                .collect();
                while !missing.is_empty() {
                    let params = watcher.next().await["params"].take();
                    let name = params["watchId"].as_str().unwrap();
                    assert_ne!(name, ending);
                    let paths = params["changedPaths"].as_array().unwrap();
                    let is_reported = |path: &String| paths.contains(&json!(path));
                    let all_changed = round == 0 && is_reported(&harness.path(name));
                    missing.retain(|(watch, path)| {
                        *watch != name || !(all_changed || is_reported(path))
                    });
                }
            }
            watcher.disconnect().await.when_ended().await;
        }
    }
}

#[tokio::test]
async fn a_folder_is_reported_under_each_of_its_names() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut first = TestClient::connect(&mut server).await;
    let mut second = TestClient::connect(&mut server).await;
    std::fs::create_dir_all(harness.path("real/inside")).unwrap();
    std::os::unix::fs::symlink("real", harness.path("link")).unwrap();
    watch(&mut first, &harness, "real").await;
    watch(&mut second, &harness, "link").await;
    for round in 0..3 {
        let name = format!("inside/{round}");
        std::fs::create_dir(harness.path("real").to_owned() + "/" + &name).unwrap();
        wait_for_changes(&mut first, &harness, "real", &[&format!("real/{name}")]).await;
        wait_for_changes(&mut second, &harness, "link", &[&format!("link/{name}")]).await;
    }
}

#[tokio::test]
async fn changes_wait_for_a_client_that_does_not_read() {
    const ROUNDS: usize = 10;
    let harness = Harness::new();
    let mut server = harness.open();
    std::fs::create_dir(harness.path("w")).unwrap();
    // Capacity for one notification, not for two.
    let mut stalled = StalledClient::connect(&mut server, 1).await;
    stalled.request(
        "fs/watch",
        json!({"watchId": "w", "path": harness.path("w")}),
    );
    assert_eq!(
        stalled.take_queued().await[0]["result"]["path"],
        harness.path("w")
    );
    let mut other = TestClient::connect(&mut server).await;
    watch(&mut other, &harness, "w").await;
    let folder = |round: usize| format!("w/{round}");
    std::fs::create_dir(harness.path(&folder(0))).unwrap();
    wait_for_changes(&mut other, &harness, "w", &[&folder(0)]).await;
    let first = stalled.take_queued().await;
    assert_eq!(
        first[0]["params"]["changedPaths"],
        json!([harness.path(&folder(0))])
    );

    // The first notification is not written yet, so nothing is queued after it.
    for round in 1..ROUNDS {
        std::fs::create_dir(harness.path(&folder(round))).unwrap();
        wait_for_changes(&mut other, &harness, "w", &[&folder(round)]).await;
    }
    let queued = stalled.outgoing.queued_bytes();
    assert_eq!(queued, first[0].to_string().len(), "only the first");
    let rest = stalled.take_queued().await;
    assert_eq!(rest.len(), 1, "one notification for all: {rest:?}");
    let all: Vec<String> = (1..ROUNDS)
        .map(|round| harness.path(&folder(round)))
        .collect();
    assert_eq!(rest[0]["params"]["changedPaths"], json!(all));
}

#[tokio::test]
async fn a_name_has_at_most_256_bytes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = |bytes: usize| json!({"watchId": "x".repeat(bytes), "path": harness.workspace});
    client.ask("fs/watch", params(256)).await.expect("a watch");
    let refused = client.ask("fs/watch", params(257)).await.unwrap_err();
    assert_eq!(
        refused,
        json!({"code": -32600, "message": "watchId has 257 bytes; it may have 256"})
    );
}
