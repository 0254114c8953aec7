//! Many threads at once, and many clients at one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::json;

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};

/// What each thread says: half a second of text.
const LOAD_PROMPT: &str = "MOCK text n=50 size=8 gap_ms=10";
const LETTERS: usize = 400;

/// So many threads that stream at the same time, shared by so many connections. All come to their end.
pub fn run(server: &CrowdServer, threads: usize, connections: usize) -> Result<()> {
    let before = server.memory()?;
    server.forget_peak()?;
    let mut clients = Vec::new();
    for at in 0..connections {
        let door = [ServerEndpoint::Tcp, ServerEndpoint::Unix][at % 2];
        clients.push((server.client(door)?, BTreeSet::new()));
    }
    for number in 0..threads {
        let (client, started) = &mut clients[number % connections];
        started.insert(client.start_thread()?);
    }
    let begun = Instant::now();
    let streaming = clients.into_iter().map(|(client, threads)| {
        // One is enough for several: they only wait.
        let work = move || hear_all(client, &threads);
        thread::Builder::new().stack_size(256 << 10).spawn(work)
    });
    let streaming = streaming.collect::<Result<Vec<_>, _>>()?;
    for one in streaming {
        one.join().map_err(|_| anyhow!("one of them panicked"))??;
    }
    let grown = server.memory_peak()?.saturating_sub(before);
    println!(
        "figure: {threads} threads over {connections} connections streamed within {:.2?}; {} KiB for each at most",
        begun.elapsed(),
        (grown >> 10) / threads as u64
    );
    Ok(())
}

/// Begins a turn on each thread, and hears them all out.
fn hear_all(mut client: CrowdClient, threads: &BTreeSet<String>) -> Result<CrowdClient> {
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut asked = BTreeMap::new();
    for thread in threads {
        let input = json!([{"type": "text", "text": LOAD_PROMPT}]);
        let params = json!({"threadId": thread, "input": input});
        asked.insert(client.send("turn/start", params.clone())?, params);
        open.insert(thread.clone(), 0);
    }
    while !open.is_empty() {
        let message = client.receive()?;
        if let Some(id) = message["id"].as_u64() {
            let params = asked.remove(&id).context("something we asked")?;
            match message["error"]["code"].as_i64() {
                None => {}
                // Too many at once: it is asked again.
                Some(-32001) => {
                    asked.insert(client.send("turn/start", params.clone())?, params);
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
