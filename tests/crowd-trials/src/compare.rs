//! Compares two builds of the server under the same load, alternately, so that a busy machine slows
//! both.

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};

use crate::client::CrowdClient;
use crate::many;
use crate::server::{CrowdServer, ServerEndpoint};

/// Number of threads that stream concurrently, each to its own client.
const STREAMS: usize = 8;

pub struct CompareSize {
    pub pieces: usize,
    pub pairs: usize,
    pub threads: usize,
}

/// Cost of a stream.
struct Cost {
    seconds: f64,
    /// CPU time of the server, which other processes do not lengthen.
    busy: f64,
}

/// Prints the cost of the same work for both programs.
pub fn run(programs: [&Path; 2], size: &CompareSize) -> Result<()> {
    let servers = [
        CrowdServer::start(programs[0])?,
        CrowdServer::start(programs[1])?,
    ];
    let mut costs = [Vec::new(), Vec::new()];
    // The first pair is a warm-up.
    for pair in 0..=size.pairs {
        for (server, costs) in servers.iter().zip(&mut costs) {
            let cost = stream(server, size.pieces)?;
            if pair > 0 {
                costs.push(cost);
            }
        }
    }
    let deltas = (STREAMS * size.pieces) as f64;
    for (program, costs) in programs.iter().zip(&costs) {
        let fastest = median(costs.iter().map(|it| deltas / it.seconds));
        let busy = median(costs.iter().map(|it| it.busy / deltas * 1e6));
        println!(
            "{}: {fastest:.0} deltas/s, {busy:.1} µs of processor for each",
            program.display()
        );
    }
    let [one, other] = &costs;
    let ratio = |of: fn(&Cost) -> f64| median(other.iter().zip(one).map(|(a, b)| of(a) / of(b)));
    println!(
        "the second needs {:.2} of the time and {:.2} of the processor",
        ratio(|it| it.seconds),
        ratio(|it| it.busy)
    );
    drop(servers);
    for program in programs {
        let server = CrowdServer::start(program)?;
        let idle = server.memory()?;
        many::run(&server, size.threads, 1)?;
        let after = server.memory()?;
        println!(
            "{}: {} KiB idle, {} KiB after {} threads, {} KiB at most",
            program.display(),
            idle >> 10,
            after >> 10,
            size.threads,
            server.memory_peak()? >> 10
        );
    }
    Ok(())
}

/// Streams this many pieces on each thread, as fast as possible, each to its own client.
fn stream(server: &CrowdServer, pieces: usize) -> Result<Cost> {
    let mut clients = Vec::new();
    for at in 0..STREAMS {
        let mut client = server.client([ServerEndpoint::Tcp, ServerEndpoint::Unix][at % 2])?;
        let thread = client.start_thread()?;
        clients.push((client, thread));
    }
    let busy = server.busy_seconds()?;
    let start = Instant::now();
    let readers: Vec<_> = clients
        .into_iter()
        .map(|(client, thread)| thread::spawn(move || run_turn(client, &thread, pieces)))
        .collect();
    for reader in readers {
        reader
            .join()
            .map_err(|_| anyhow!("one of them panicked"))??;
    }
    Ok(Cost {
        seconds: start.elapsed().as_secs_f64(),
        busy: server.busy_seconds()? - busy,
    })
}

fn run_turn(mut client: CrowdClient, thread: &str, pieces: usize) -> Result<()> {
    client.start_turn(thread, &format!("MOCK text n={pieces} size=8"))?;
    loop {
        let message = client.receive()?;
        if message["method"] == "turn/completed" {
            let status = &message["params"]["turn"]["status"];
            ensure!(status == "completed", "a turn ended as {status}");
            return Ok(());
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
