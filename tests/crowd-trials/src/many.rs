//! Many concurrent threads, over one or many connections.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::json;

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};

/// Prompt of each thread: half a second of text.
const LOAD_PROMPT: &str = "MOCK text n=50 size=8 gap_ms=10";
const LETTERS: usize = 400;

/// Streams this many threads concurrently over this many connections. All must complete.
pub fn run(server: &CrowdServer, threads: usize, connections: usize) -> Result<()> {
    let before = server.memory()?;
    server.reset_peak()?;
    let mut clients = Vec::new();
    for at in 0..connections {
        let endpoint = [ServerEndpoint::Tcp, ServerEndpoint::Unix][at % 2];
        clients.push((server.client(endpoint)?, BTreeSet::new()));
    }
    for number in 0..threads {
        let (client, started) = &mut clients[number % connections];
        started.insert(client.start_thread()?);
    }
    let start = Instant::now();
    let streaming = clients.into_iter().map(|(client, threads)| {
        // A small stack is enough: these threads only wait.
        let work = move || run_turns(client, &threads);
        thread::Builder::new().stack_size(256 << 10).spawn(work)
    });
    let streaming = streaming.collect::<Result<Vec<_>, _>>()?;
    for worker in streaming {
        worker
            .join()
            .map_err(|_| anyhow!("one of them panicked"))??;
    }
    let grown = server.memory_peak()?.saturating_sub(before);
    println!(
        "figure: {threads} threads over {connections} connections streamed within {:.2?}; {} KiB for each at most",
        start.elapsed(),
        (grown >> 10) / threads as u64
    );
    Ok(())
}

/// Starts a turn on each thread, and receives all of them to their end.
fn run_turns(mut client: CrowdClient, threads: &BTreeSet<String>) -> Result<CrowdClient> {
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut requests = BTreeMap::new();
    for thread in threads {
        let input = json!([{"type": "text", "text": LOAD_PROMPT}]);
        let params = json!({"threadId": thread, "input": input});
        requests.insert(client.send("turn/start", params.clone())?, params);
        open.insert(thread.clone(), 0);
    }
    while !open.is_empty() {
        let message = client.receive()?;
        if let Some(id) = message["id"].as_u64() {
            let params = requests.remove(&id).context("something we asked")?;
            match message["error"]["code"].as_i64() {
                None => {}
                // Too many at once: retry.
                Some(-32001) => {
                    requests.insert(client.send("turn/start", params.clone())?, params);
                }
                Some(_) => bail!("a turn was refused: {message}"),
            }
            continue;
        }
        let params = &message["params"];
        let thread = params["threadId"].as_str().unwrap_or_default();
        let Some(letters) = open.get_mut(thread) else {
            continue;
        };
        match message["method"].as_str() {
            Some("item/agentMessage/delta") => {
                *letters += params["delta"].as_str().map_or(0, str::len);
            }
            Some("turn/completed") => {
                let status = &params["turn"]["status"];
                ensure!(status == "completed", "a turn ended as {status}");
                ensure!(*letters == LETTERS, "{letters} letters of {LETTERS}");
                open.remove(thread);
            }
            _ => {}
        }
    }
    Ok(client)
}
