//! A disk that does not answer: who uses it waits, nobody else does.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::client::{TestClient, id_of};
use crate::player::Stage;

/// How many jobs of one connection may wait for a disk.
const JOBS_MAX: usize = 16;

/// Runs a test on a runtime with one thread for disks: jobs run one by one, in the order they came to it.
/// The clock stands still.
pub fn with_one_thread(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(test);
}

/// While this is there, the one thread for disks does nothing.
pub struct BlockedDisk {
    _release: mpsc::Sender<()>,
}

impl BlockedDisk {
    pub async fn new() -> Self {
        let (release, released) = mpsc::channel();
        let (begin, begun) = tokio::sync::oneshot::channel();
        tokio::task::spawn_blocking(move || {
            begin.send(()).expect("the test waits");
            let _ = released.recv();
        });
        begun.await.expect("it began");
        Self { _release: release }
    }
}

/// When this returns, what the client sent before is in line for its disk.
pub async fn in_line(client: &mut TestClient) {
    for _ in 0..10 {
        let answer = client.ask("account/read", json!({})).await;
        answer.expect("an answer without a disk");
    }
}

fn search(stage: &Stage, client: &mut TestClient, count: usize) -> Vec<i64> {
    let params = json!({"query": "x", "roots": [stage.path("nowhere")]});
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
fn a_connection_keeps_no_more_than_its_share_of_threads() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        for jobs in [JOBS_MAX - 1, JOBS_MAX] {
            let held = BlockedDisk::new().await;
            let mut expected = search(&stage, &mut client, jobs);
            let late = client.request("fs/getMetadata", json!({"path": "/"}));
            in_line(&mut client).await;
            // The configuration is on another disk: it does not wait for the connection's share.
            let write = json!({"keyPath": "x", "value": jobs, "mergeStrategy": "replace"});
            let config = client.request("config/value/write", write);
            in_line(&mut client).await;
            drop(held);
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
fn what_a_client_that_is_gone_had_waiting_for_its_disk_is_not_begun() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        let held = BlockedDisk::new().await;
        search(&stage, &mut client, JOBS_MAX);
        let proof = stage.path("proof");
        client.request("fs/writeFile", json!({"path": proof, "dataBase64": ""}));
        in_line(&mut client).await;
        let mut left = client.leave().await;
        // The write is forgotten although nothing before it has ended, and so is its place in the lane.
        let removed = other.request("fs/remove", json!({"path": proof, "force": false}));
        in_line(&mut other).await;
        drop(held);
        let answer = other.next().await;
        assert_eq!(id_of(&answer), removed);
        assert_eq!(answer["error"]["code"], -32603);
        left.when_ended().await;
        assert!(!std::fs::exists(&proof).unwrap());
    });
}

/// Whoever waits for a disk's turn for this long is told to try again.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn what_hangs_for_one_client_is_in_nobody_elses_way() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        let mut other = TestClient::connect(&mut server).await;
        let held = BlockedDisk::new().await;
        // It wants all there is below the root, and hangs.
        client.request("fs/createDirectory", json!({"path": "/"}));
        in_line(&mut client).await;
        // This is answered without a disk, once it is let into the lane of its path.
        let answer = other.ask("fs/readFile", json!({"path": "relative"})).await;
        assert_eq!(answer.expect_err("not absolute")["code"], -32600);
        // Its own requests keep their order.
        let late = client.request("fs/readFile", json!({"path": "relative"}));
        in_line(&mut client).await;
        drop(held);
        assert_eq!(client.next().await["result"], json!({}));
        assert_eq!(id_of(&client.next().await), late);
    });
}

/// The jobs of 24 connections whose disks hang are as many as may run for all together.
#[test]
fn connections_whose_disks_hang_leave_something_for_others() {
    with_one_thread(async {
        let stage = Stage::new();
        let mut server = stage.open();
        let mut hanging = Vec::new();
        for _ in 0..24 {
            hanging.push(TestClient::connect(&mut server).await);
        }
        let mut other = TestClient::connect(&mut server).await;
        let held = BlockedDisk::new().await;
        for client in &mut hanging {
            search(&stage, client, JOBS_MAX);
            in_line(client).await;
        }
        let asked = other.request("fs/getMetadata", json!({"path": "/"}));
        in_line(&mut other).await;

        // Who has no turn by now is told so. The other has one.
        tokio::time::advance(PERMIT_TIMEOUT).await;
        let mut refused = 0;
        for client in &mut hanging {
            // Each answer to this comes behind those that were there before.
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
        drop(held);
        let answer = other.next().await;
        assert_eq!(id_of(&answer), asked);
        assert_eq!(answer["result"]["isDirectory"], true);
    });
}

#[test]
fn a_configuration_that_may_have_changed_is_not_read_where_clients_are_served() {
    with_one_thread(async {
        let stage = Stage::new();
        std::fs::write(stage.config(), "model = \"one\"\n").unwrap();
        let mut server = stage.open();
        let mut client = TestClient::connect(&mut server).await;
        let held = BlockedDisk::new().await;
        let waiting = ["config/read", "model/list", "thread/start"]
            .map(|method| client.request(method, json!({})));
        in_line(&mut client).await;
        drop(held);
        assert_eq!(answered(&mut client, 3).await, waiting);
    });
}
