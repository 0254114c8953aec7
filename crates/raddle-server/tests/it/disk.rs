//! A disk that does not answer: who uses it waits, nobody else does.

use std::sync::mpsc;

use serde_json::json;

use crate::client::{Client, id_of};
use crate::player::Stage;

/// How many jobs of one connection may wait for a disk.
const JOBS_MAX: usize = 16;

/// Runs a test on a runtime with one thread for disks: jobs run one by one, in the order they came to it.
pub fn with_one_thread(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime")
        .block_on(test);
}

/// While this is there, the one thread for disks does nothing.
pub struct Held {
    _release: mpsc::Sender<()>,
}

impl Held {
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
pub async fn in_line(client: &mut Client) {
    for _ in 0..10 {
        let answer = client.ask("account/read", json!({})).await;
        answer.expect("an answer without a disk");
    }
}

fn search(stage: &Stage, client: &mut Client, count: usize) -> Vec<i64> {
    let params = json!({"query": "x", "roots": [stage.path("nowhere")]});
    (0..count)
        .map(|_| client.request("fuzzyFileSearch", params.clone()))
        .collect()
}

async fn answered(client: &mut Client, count: usize) -> Vec<i64> {
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
        let mut client = Client::connect(&mut server).await;
        for jobs in [JOBS_MAX - 1, JOBS_MAX] {
            let held = Held::new().await;
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
        let mut client = Client::connect(&mut server).await;
        let mut other = Client::connect(&mut server).await;
        let held = Held::new().await;
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
