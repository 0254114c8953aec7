//! A thread that streams to ten ordinary clients, and to other clients beside them.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::fold::{PIECE, TimedFold};
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::read_turn;

/// Number of messages over which the text is distributed.
const MESSAGES: usize = 10;

/// Number of ordinary clients.
pub const ORDINARY: usize = 10;

/// Result of a stream.
pub struct StreamResult {
    /// State of the ordinary clients.
    pub fold: TimedFold,
    /// 99th percentile of the latency at the ordinary clients.
    pub p99: Duration,
    pub p50: Duration,
}

/// Streams this many pieces to the ordinary clients and to those that the closure adds. All
/// ordinary clients must end with the same state.
pub fn stream<G>(
    server: &CrowdServer,
    pieces: usize,
    add_clients: impl FnOnce(&str) -> Result<G>,
) -> Result<(StreamResult, G)> {
    let mut driver = server.client(ServerEndpoint::Tcp)?;
    let thread = driver.start_thread()?;
    let mut clients = Vec::new();
    for at in 0..ORDINARY {
        let endpoint = [ServerEndpoint::Tcp, ServerEndpoint::Unix][at % 2];
        let mut client = server.client(endpoint)?;
        client.subscribe(&thread)?;
        clients.push(client);
    }
    let others = add_clients(&thread)?;
    let each = pieces / MESSAGES;
    let text = format!(" text n={each} size={PIECE} stamp=1 gap_us=200").repeat(MESSAGES);
    driver.start_turn(&thread, &format!("MOCK{text}"))?;
    // It receives no more of it.
    drop(driver);
    let readers = clients.into_iter().map(|mut client| {
        thread::spawn(move || {
            let mut fold = TimedFold::default();
            read_turn(&mut client, &mut fold).map(|()| fold)
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut folds = Vec::new();
    for reader in readers {
        let fold = reader.join();
        folds.push(fold.map_err(|_| anyhow!("one of them panicked"))??);
    }
    let mut latencies: Vec<u32> = folds
        .iter_mut()
        .flat_map(|it| it.latencies.drain(..))
        .collect();
    latencies.sort_unstable();
    let percentile = |percent: usize| {
        let at = latencies.len() * percent / 100;
        Duration::from_micros(latencies.get(at).copied().unwrap_or_default().into())
    };
    let (p50, p99) = (percentile(50), percentile(99));
    let fold = folds.pop().ok_or_else(|| anyhow!("there are ten"))?;
    for other in &folds {
        other.ensure_equal(&fold)?;
    }
    anyhow::ensure!(
        fold.letters() >= each * MESSAGES * PIECE,
        "{} letters of {pieces} pieces",
        fold.letters()
    );
    Ok((StreamResult { fold, p99, p50 }, others))
}
