//! A client that pipelines far more requests than it reads, beside ten clients that must still be
//! served.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};

/// Error code for too many concurrent requests of one client.
const OVERLOADED: i64 = -32001;

/// Requested methods: one that is answered at once, and one that reads the disk.
const METHODS: [&str; 2] = ["account/read", "thread/list"];

pub fn run(server: &CrowdServer, requests: usize) -> Result<()> {
    for endpoint in [ServerEndpoint::Tcp, ServerEndpoint::Unix] {
        let mut others = Vec::new();
        for _ in 0..10 {
            others.push(server.client(endpoint)?);
        }
        let mut eager = server.client(endpoint)?;
        let is_over = AtomicBool::new(false);
        let (answers, answered) = thread::scope(|scope| {
            let is_over = &is_over;
            let workers = others.iter_mut();
            let workers =
                workers.map(|client| scope.spawn(move || request_repeatedly(client, is_over)));
            let workers: Vec<_> = workers.collect();
            let answers = send_all(&mut eager, requests);
            is_over.store(true, Ordering::Release);
            let mut answered = 0;
            for worker in workers {
                answered += worker
                    .join()
                    .map_err(|_| anyhow!("one of them panicked"))??;
            }
            anyhow::Ok((answers?, answered))
        })?;
        println!(
            "figure: {endpoint:?}: of {requests} requests at once {} were refused for now; {answered} of others were answered meanwhile",
            answers
        );
    }
    Ok(())
}

/// Sends all requests without reading a response, then reads the responses: one for each. Returns
/// how many were rejected as overload.
fn send_all(client: &mut CrowdClient, requests: usize) -> Result<usize> {
    let mut open = BTreeMap::new();
    for number in 0..requests {
        let method = METHODS[number % METHODS.len()];
        open.insert(client.send(method, json!({}))?, method);
    }
    let mut rejected = 0;
    while !open.is_empty() {
        let answer = client.receive()?;
        let Some(id) = answer["id"].as_u64() else {
            continue;
        };
        let method = open.remove(&id);
        ensure!(method.is_some(), "{id} was answered twice");
        let code = answer["error"]["code"].as_i64();
        ensure!(
            code.is_none_or(|it| it == OVERLOADED),
            "{method:?} was refused: {answer}"
        );
        rejected += usize::from(code.is_some());
    }
    Ok(rejected)
}

/// Sends requests one after the other. None may be rejected.
fn request_repeatedly(client: &mut CrowdClient, is_over: &AtomicBool) -> Result<usize> {
    let mut answered = 0;
    while !is_over.load(Ordering::Acquire) {
        let answer = client.request(METHODS[answered % METHODS.len()], json!({}))?;
        ensure!(answer != Value::Null, "an empty answer");
        answered += 1;
    }
    Ok(answered)
}
