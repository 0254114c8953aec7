//! One who reads a kilobyte a second and one who never reads, at each door and behind another process, and a parent whose
//! pipe is full, beside ten who notice nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::ratio::Ratio;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::{Parent, SlowClient, StuckClient};
use crate::stream::{ORDINARY, stream};

const MIB: u64 = 1 << 20;

/// What may be queued for each client, and one page of what it reads on from the journal.
const QUEUED_BYTES: u64 = 4 * MIB + (256 << 10);

/// What a server may hold beside that.
const OVERHEAD_BYTES_MAX: u64 = 20_000_000;

/// Four times what the journal's log holds before it is moved: it goes on growing while someone reads.
const LOG_BYTES_MAX: u64 = 16 * MIB;

/// How often the log is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub struct SlowSize {
    pub pieces: usize,
    pub pairs: usize,
    pub ratio_max: f64,
    /// How long the last guests stay.
    pub linger: Duration,
}

/// Those who take little, at one thread.
struct SlowClients {
    slow: Vec<SlowClient>,
    stuck: Vec<(ServerEndpoint, StuckClient)>,
}

impl SlowClients {
    fn join(server: &CrowdServer, parent: &mut Parent, thread: &str) -> Result<Self> {
        parent.join(thread)?;
        let doors = [
            ServerEndpoint::Tcp,
            ServerEndpoint::Unix,
            ServerEndpoint::OtherProcess,
        ];
        let slow = doors.map(|door| SlowClient::join(server, door, thread));
        let never = doors.map(|door| Ok((door, StuckClient::join(server, door, thread)?)));
        Ok(Self {
            slow: slow.into_iter().collect::<Result<_>>()?,
            stuck: never.into_iter().collect::<Result<_>>()?,
        })
    }

    fn count(&self) -> u64 {
        // And the parent.
        (self.slow.len() + self.stuck.len() + 1) as u64
    }
}

pub fn run(server: &mut CrowdServer, size: &SlowSize) -> Result<()> {
    let (stdin, stdout) = server.take_stdio()?;
    let mut parent = Parent::introduced(stdin, stdout)?;
    // The first stream pays for what is done once.
    stream(server, size.pieces, |_| Ok(()))?;
    server.forget_peak()?;
    let before = server.memory()?;
    let mut ratio = Ratio::default();
    let log = watched(server, || {
        for pair in 1..=size.pairs {
            let (alone, ()) = stream(server, size.pieces, |_| Ok(()))?;
            let join = |thread: &str| SlowClients::join(server, &mut parent, thread);
            let (beside, guests) = stream(server, size.pieces, join)?;
            println!(
                "pair {pair}: p50 {:.1?} and {:.1?}, p99 {:.1?} and {:.1?}",
                alone.p50, beside.p50, alone.p99, beside.p99
            );
            ratio.add(alone.p99, beside.p99);
            bounded(server, before, guests.count())?;
            let SlowClients { slow, stuck: never } = guests;
            if pair == size.pairs {
                // The parent is given up meanwhile, and nobody else is.
                linger(server, &slow, size.linger)?;
            }
            if pair < size.pairs || size.linger.is_zero() {
                parent.hear_out()?.is(&beside.fold).context("the parent")?;
            }
            for slow in slow {
                slow.hurry()?.is(&beside.fold).context("the slow one")?;
            }
            if pair == size.pairs && !size.linger.is_zero() {
                for (door, never) in never {
                    let gone = never.let_go();
                    let (code, reason) = gone.with_context(|| format!("on {door:?}"))?;
                    println!("{door:?}: who never reads was let go with {code}: {reason}");
                }
            }
        }
        Ok(())
    })?;
    ensure!(log <= LOG_BYTES_MAX, "the log grew to {log} bytes");
    println!("the journal's log had at most {} MiB", log / MIB);
    ratio.at_most(size.ratio_max)
}

/// What the server holds for everyone is no more than it may.
fn bounded(server: &CrowdServer, before: u64, guests: u64) -> Result<()> {
    let grown = server.memory_peak()?.saturating_sub(before);
    let grown_max = (ORDINARY as u64 + guests) * QUEUED_BYTES + OVERHEAD_BYTES_MAX;
    println!(
        "figure: memory grew by {} MiB of {}",
        grown / MIB,
        grown_max / MIB
    );
    ensure!(grown <= grown_max, "grew by {grown} bytes of {grown_max}");
    Ok(())
}

/// The slow ones are not cut off as long as they read.
fn linger(server: &CrowdServer, slow: &[SlowClient], stay: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < stay {
        thread::sleep(Duration::from_secs(1));
        let all_there = slow.iter().all(SlowClient::is_there);
        ensure!(all_there, "a slow one left after {:.0?}", begun.elapsed());
    }
    println!(
        "after {:.0?} the slow ones still read, and the server has {} descriptors",
        begun.elapsed(),
        server.descriptors()?
    );
    Ok(())
}

/// The longest that the journal's log was meanwhile.
fn watched(server: &CrowdServer, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let (is_over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                longest.fetch_max(server.log_bytes(), Ordering::AcqRel);
                thread::sleep(POLL_INTERVAL);
            }
        });
        let worked = work();
        is_over.store(true, Ordering::Release);
        worked
    })?;
    Ok(longest.into_inner())
}
