//! A client that reads a kilobyte a second and one that never reads, at each endpoint and through
//! another process, and a parent whose pipe is full, beside ten clients that must not be affected.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::ratio::Ratio;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::{Parent, SlowClient, StuckClient};
use crate::stream::{ORDINARY, stream};

const MIB: u64 = 1 << 20;

/// Maximum bytes queued for each client, and one page that it reads from the journal.
const QUEUED_BYTES: u64 = 4 * MIB + (256 << 10);

/// Maximum further memory of the server.
const OVERHEAD_BYTES_MAX: u64 = 20_000_000;

/// Maximum size of the WAL: four times the size at which it is checkpointed, because it grows
/// during reads.
const LOG_BYTES_MAX: u64 = 16 * MIB;

/// Interval between checks of the WAL.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub struct SlowSize {
    pub pieces: usize,
    pub pairs: usize,
    pub ratio_max: f64,
    /// Time for which the last slow clients stay.
    pub linger: Duration,
}

/// Slow and stuck clients, subscribed to one thread.
struct SlowClients {
    slow: Vec<SlowClient>,
    stuck: Vec<(ServerEndpoint, StuckClient)>,
}

impl SlowClients {
    fn subscribe(server: &CrowdServer, parent: &mut Parent, thread: &str) -> Result<Self> {
        parent.subscribe(thread)?;
        let endpoints = [
            ServerEndpoint::Tcp,
            ServerEndpoint::Unix,
            ServerEndpoint::OtherProcess,
        ];
        let slow = endpoints.map(|endpoint| SlowClient::subscribe(server, endpoint, thread));
        let stuck = endpoints
            .map(|endpoint| Ok((endpoint, StuckClient::subscribe(server, endpoint, thread)?)));
        Ok(Self {
            slow: slow.into_iter().collect::<Result<_>>()?,
            stuck: stuck.into_iter().collect::<Result<_>>()?,
        })
    }

    fn count(&self) -> u64 {
        // And the parent.
        (self.slow.len() + self.stuck.len() + 1) as u64
    }
}

pub fn run(server: &mut CrowdServer, size: &SlowSize) -> Result<()> {
    let (stdin, stdout) = server.take_stdio()?;
    let mut parent = Parent::initialized(stdin, stdout)?;
    // The first stream is a warm-up.
    stream(server, size.pieces, |_| Ok(()))?;
    server.reset_peak()?;
    let before = server.memory()?;
    let mut ratio = Ratio::default();
    let log = track_log_bytes(server, || {
        for pair in 1..=size.pairs {
            let (alone, ()) = stream(server, size.pieces, |_| Ok(()))?;
            let subscribe = |thread: &str| SlowClients::subscribe(server, &mut parent, thread);
            let (loaded, slow_clients) = stream(server, size.pieces, subscribe)?;
            println!(
                "pair {pair}: p50 {:.1?} and {:.1?}, p99 {:.1?} and {:.1?}",
                alone.p50, loaded.p50, alone.p99, loaded.p99
            );
            ratio.add(alone.p99, loaded.p99);
            check_memory(server, before, slow_clients.count())?;
            let SlowClients { slow, stuck } = slow_clients;
            if pair == size.pairs {
                // The parent is disconnected meanwhile, but no other client.
                linger(server, &slow, size.linger)?;
            }
            if pair < size.pairs || size.linger.is_zero() {
                parent
                    .read_turn()?
                    .ensure_equal(&loaded.fold)
                    .context("the parent")?;
            }
            for slow in slow {
                slow.hurry()?
                    .ensure_equal(&loaded.fold)
                    .context("the slow one")?;
            }
            if pair == size.pairs && !size.linger.is_zero() {
                for (endpoint, stuck) in stuck {
                    let closed = stuck.read_to_close();
                    let (code, reason) = closed.with_context(|| format!("on {endpoint:?}"))?;
                    println!("{endpoint:?}: who never reads was let go with {code}: {reason}");
                }
            }
        }
        Ok(())
    })?;
    ensure!(log <= LOG_BYTES_MAX, "the log grew to {log} bytes");
    println!("the journal's log had at most {} MiB", log / MIB);
    ratio.at_most(size.ratio_max)
}

/// Checks that the server's memory for all clients stays within its limits.
fn check_memory(server: &CrowdServer, before: u64, clients: u64) -> Result<()> {
    let grown = server.memory_peak()?.saturating_sub(before);
    let grown_max = (ORDINARY as u64 + clients) * QUEUED_BYTES + OVERHEAD_BYTES_MAX;
    println!(
        "figure: memory grew by {} MiB of {}",
        grown / MIB,
        grown_max / MIB
    );
    ensure!(grown <= grown_max, "grew by {grown} bytes of {grown_max}");
    Ok(())
}

/// Checks that slow clients stay connected as long as they read.
fn linger(server: &CrowdServer, slow: &[SlowClient], duration: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < duration {
        thread::sleep(Duration::from_secs(1));
        let all_reading = slow.iter().all(SlowClient::is_reading);
        ensure!(all_reading, "a slow one left after {:.0?}", start.elapsed());
    }
    println!(
        "after {:.0?} the slow ones still read, and the server has {} descriptors",
        start.elapsed(),
        server.descriptors()?
    );
    Ok(())
}

/// Returns the maximum size of the WAL during the work.
fn track_log_bytes(server: &CrowdServer, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let (is_over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                longest.fetch_max(server.log_bytes(), Ordering::AcqRel);
                thread::sleep(POLL_INTERVAL);
            }
        });
        let result = work();
        is_over.store(true, Ordering::Release);
        result
    })?;
    Ok(longest.into_inner())
}
