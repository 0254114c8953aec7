//! One who asks far more than it waits for, beside ten who are still answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};

/// Too many requests of one client at once.
const OVERLOADED: i64 = -32001;

/// What is asked: something that is answered on the spot, and something that reads the disk.
const METHODS: [&str; 2] = ["account/read", "thread/list"];

pub fn run(server: &CrowdServer, requests: usize) -> Result<()> {
    for door in [ServerEndpoint::Tcp, ServerEndpoint::Unix] {
        let mut others = Vec::new();
        for _ in 0..10 {
            others.push(server.client(door)?);
        }
        let mut eager = server.client(door)?;
        let is_over = AtomicBool::new(false);
        let (answers, asked) = thread::scope(|scope| {
            let is_over = &is_over;
            let asking = others.iter_mut();
            let asking = asking.map(|client| scope.spawn(move || ask_on(client, is_over)));
            let asking: Vec<_> = asking.collect();
            let answers = ask_all(&mut eager, requests);
            is_over.store(true, Ordering::Release);
            let mut asked = 0;
            for one in asking {
                asked += one.join().map_err(|_| anyhow!("one of them panicked"))??;
            }
            anyhow::Ok((answers?, asked))
        })?;
        println!(
            "figure: {door:?}: of {requests} requests at once {} were refused for now; {asked} of others were answered meanwhile",
            answers
        );
    }
    Ok(())
}

/// Sends all requests without reading an answer, then takes the answers: one for each. Gives how many were
/// refused for now.
fn ask_all(client: &mut CrowdClient, requests: usize) -> Result<usize> {
    let mut open = BTreeMap::new();
    for number in 0..requests {
        let method = METHODS[number % METHODS.len()];
        open.insert(client.send(method, json!({}))?, method);
    }
    let mut refused = 0;
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
        refused += usize::from(code.is_some());
    }
    Ok(refused)
}

/// Asks one thing after the other. Nothing is refused.
fn ask_on(client: &mut CrowdClient, is_over: &AtomicBool) -> Result<usize> {
    let mut asked = 0;
    while !is_over.load(Ordering::Acquire) {
        let answer = client.ask(METHODS[asked % METHODS.len()], json!({}))?;
        ensure!(answer != Value::Null, "an empty answer");
        asked += 1;
    }
    Ok(asked)
}
