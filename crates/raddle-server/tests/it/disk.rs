//! A disk that hangs: only its own users wait.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::client::{TestClient, id_of};
use crate::player::Harness;

/// The maximum number of jobs of one connection that may wait for a disk.
const JOBS_MAX: usize = 16;

/// Runs a test on a runtime with one blocking thread: jobs run one by one, in order of arrival. The
/// clock is paused.
pub fn with_one_thread(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(test);
}

/// While it exists, the one blocking thread does nothing.
pub struct BlockedDisk {
    _release: mpsc::Sender<()>,
}

impl BlockedDisk {
    pub async fn new() -> Self {
        let (release, released) = mpsc::channel();
        let (started_sender, started) = tokio::sync::oneshot::channel();
        tokio::task::spawn_blocking(move || {
            started_sender.send(()).expect("the test waits");
            let _ = released.recv();
        });
        started.await.expect("it began");
        Self { _release: release }
    }
}

/// When this returns, the client's earlier requests are queued for its disk.
pub async fn wait_until_queued(client: &mut TestClient) {
    for _ in 0..10 {
        let answer = client.ask("account/read", json!({})).await;
        answer.expect("an answer without a disk");
    }
}

fn search(harness: &Harness, client: &mut TestClient, count: usize) -> Vec<i64> {
    let params = json!({"query": "x", "roots": [harness.path("nowhere")]});
    (0..count)
        .map(|_| client.request("fuzzyFileSearch", params.clone()))
        .collect()
}

async fn answered(client: &mut TestClient, count: usize) -> Vec<i64> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(id_of(&client.next().await));
    }
    ids
}

#[test]
fn a_connection_uses_only_its_share_of_threads() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        for jobs in [JOBS_MAX - 1, JOBS_MAX] {
            let blocked = BlockedDisk::new().await;
            let mut expected = search(&harness, &mut client, jobs);
            let late = client.request("fs/getMetadata", json!({"path": "/"}));
            wait_until_queued(&mut client).await;
            // The configuration is on another disk: it does not wait for the connection's share.
            let write = json!({"keyPath": "x", "value": jobs, "mergeStrategy": "replace"});
            let config = client.request("config/value/write", write);
            wait_until_queued(&mut client).await;
            drop(blocked);
            if jobs < JOBS_MAX {
                expected.extend([late, config]);
            } else {
                expected.extend([config, late]);
            }
            assert_eq!(answered(&mut client, jobs + 2).await, expected);
        }
    });
}

#[test]
fn disk_jobs_of_a_disconnected_client_are_not_started() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        let blocked = BlockedDisk::new().await;
        search(&harness, &mut client, JOBS_MAX);
        let proof = harness.path("proof");
        client.request("fs/writeFile", json!({"path": proof, "dataBase64": ""}));
        wait_until_queued(&mut client).await;
        let mut closed = client.disconnect().await;
        // The write is dropped although nothing before it has ended, and so is its place in the
        // lane.
        let removed = other.request("fs/remove", json!({"path": proof, "force": false}));
        wait_until_queued(&mut other).await;
        drop(blocked);
        let answer = other.next().await;
        assert_eq!(id_of(&answer), removed);
        assert_eq!(answer["error"]["code"], -32603);
        closed.when_ended().await;
        assert!(!std::fs::exists(&proof).unwrap());
    });
}

/// A request that waits for a permit for this long fails as overloaded.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn a_hanging_disk_blocks_only_its_own_client() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        let blocked = BlockedDisk::new().await;
        // It claims everything below the root, and hangs.
        client.request("fs/createDirectory", json!({"path": "/"}));
        wait_until_queued(&mut client).await;
        // This needs no disk, once the lane of its path admits it.
        let answer = other.ask("fs/readFile", json!({"path": "relative"})).await;
        assert_eq!(answer.expect_err("not absolute")["code"], -32600);
        // Its own requests keep their order.
        let late = client.request("fs/readFile", json!({"path": "relative"}));
        wait_until_queued(&mut client).await;
        drop(blocked);
        assert_eq!(client.next().await["result"], json!({}));
        assert_eq!(id_of(&client.next().await), late);
    });
}

/// The jobs of 24 connections with hanging disks reach the limit for all connections.
#[test]
fn connections_whose_disks_hang_leave_something_for_others() {
    with_one_thread(async {
        let harness = Harness::new();
        let mut server = harness.open();
        let mut hanging = Vec::new();
        for _ in 0..24 {
            hanging.push(TestClient::connect(&mut server).await);
        }
        let mut other = TestClient::connect(&mut server).await;
        let blocked = BlockedDisk::new().await;
        for client in &mut hanging {
            search(&harness, client, JOBS_MAX);
            wait_until_queued(client).await;
        }
        let request = other.request("fs/getMetadata", json!({"path": "/"}));
        wait_until_queued(&mut other).await;

        // Requests without a permit by now fail as overloaded. The other client's has one.
        tokio::time::advance(PERMIT_TIMEOUT).await;
        let mut refused = 0;
        for client in &mut hanging {
            // The response to this follows those that were queued before.
            let last = client.request("account/read", json!({}));
            loop {
                let answer = client.next().await;
                if id_of(&answer) == last {
                    break;
                }
                assert_eq!(answer["error"]["code"], -32001, "{answer}");
                assert!(answer["error"]["data"]["retryAfterMs"].is_number());
                refused += 1;
            }
        }
        assert_eq!(refused, 8 * (JOBS_MAX - 1), "16 have all, 8 have one");
        drop(blocked);
        let answer = other.next().await;
        assert_eq!(id_of(&answer), request);
        assert_eq!(answer["result"]["isDirectory"], true);
    });
}

#[test]
fn a_changed_configuration_is_read_on_a_disk_thread() {
    with_one_thread(async {
        let harness = Harness::new();
        std::fs::write(harness.config(), "model = \"one\"\n").unwrap();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let blocked = BlockedDisk::new().await;
        let waiting = ["config/read", "model/list", "thread/start"]
            .map(|method| client.request(method, json!({})));
        wait_until_queued(&mut client).await;
        drop(blocked);
        assert_eq!(answered(&mut client, 3).await, waiting);
    });
}
