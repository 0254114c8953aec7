//! A disk that does not answer: who uses it waits, nobody else does.

use std::fs::File;

use serde_json::json;

use crate::client::{Client, Pipe, id_of};
use crate::player::Stage;

/// How many jobs of one connection may wait for a disk.
const JOBS_MAX: usize = 16;

/// Searches that hang. Each folder has its own pipe, at which a search stops.
struct Hanging {
    pipes: Vec<Pipe>,
    /// The other ends, of those at which a search has stopped.
    writers: Vec<Option<File>>,
}

impl Hanging {
    fn new(stage: &Stage, client: &mut Client, count: usize) -> Self {
        let pipes = (0..count).map(|number| {
            let folder = stage.path(&format!("hanging{number}"));
            std::fs::create_dir(&folder).unwrap();
            let pipe = Pipe::new(format!("{folder}/.ignore"));
            client.request("fuzzyFileSearch", json!({"query": "x", "roots": [folder]}));
            pipe
        });
        Self {
            pipes: pipes.collect(),
            writers: std::iter::repeat_with(|| None).take(count).collect(),
        }
    }

    /// How many searches have begun by now.
    fn begun(&mut self) -> usize {
        for (pipe, writer) in self.pipes.iter().zip(&mut self.writers) {
            *writer = writer.take().or_else(|| pipe.try_open());
        }
        self.writers.iter().flatten().count()
    }

    /// Waits until all have begun that may, while another client is served.
    async fn when_begun(&mut self, other: &mut Client) {
        let begun = async {
            while self.begun() < JOBS_MAX {
                serve(other).await;
            }
        };
        let limit = std::time::Duration::from_secs(10);
        tokio::time::timeout(limit, begun).await.expect("in time");
    }
}

async fn serve(client: &mut Client) {
    let path = json!({"path": "/"});
    client.ask("fs/getMetadata", path).await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_keeps_no_more_than_its_share_of_threads() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let mut other = Client::connect(&mut server).await;
    let mut hanging = Hanging::new(&stage, &mut client, JOBS_MAX + 4);
    hanging.when_begun(&mut other).await;
    for _ in 0..100 {
        serve(&mut other).await;
    }
    assert_eq!(hanging.begun(), JOBS_MAX);

    // Its configuration is on another disk, and what needs no disk goes on.
    for method in ["config/read", "model/list", "account/read"] {
        client.ask(method, json!({})).await.expect(method);
    }
    // What comes now waits behind the others, and is done when they are.
    let late = client.request("fs/getMetadata", json!({"path": "/"}));
    drop(hanging);
    let mut answered = Vec::new();
    for _ in 0..JOBS_MAX + 5 {
        answered.push(id_of(&client.next().await));
    }
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), JOBS_MAX + 5);
    assert!(answered.contains(&late));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_that_is_gone_had_waiting_for_its_disk_is_not_begun() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let mut other = Client::connect(&mut server).await;
    let mut hanging = Hanging::new(&stage, &mut client, JOBS_MAX);
    hanging.when_begun(&mut other).await;
    let proof = stage.path("proof");
    client.request("fs/writeFile", json!({"path": proof, "dataBase64": ""}));
    client
        .ask("account/read", json!({}))
        .await
        .expect("it is in line by now");
    let mut left = client.leave().await;
    // The write is forgotten although nothing before it has ended, and so is its place in the lane.
    let removed = other.ask("fs/remove", json!({"path": proof, "force": false}));
    assert_eq!(removed.await.unwrap_err()["code"], -32603);
    drop(hanging);
    left.when_ended().await;
    assert!(!std::fs::exists(&proof).unwrap());
}
