//! Processor time of a streamed delta, with the spans of the log and without.
//!
//! Both binaries are built from one commit; in the other one, `tracing` is compiled out. Turns of
//! both alternate, and a pair of them does not count if other programs were busy meanwhile. The log is
//! at its default level, at which a delta creates no span.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::noise::{Noise, process_ticks};
use crate::wires::{Mock, Server};

/// Counted turns of each binary. They use about 1,000 ticks, so one tick matters little.
const TURNS: usize = 60;
/// Deltas of a turn.
const PIECES: usize = 5000;
/// Limit of the ratio of the two times.
const RATIO_MAX: f64 = 1.02;
/// Share of the machine that others may have during a pair of turns. A shared processor and its caches
/// change the time of the same work by several percent.
const NOISE_MAX: f64 = 0.2;
/// Maximum number of pairs, with those that others disturbed.
const PAIRS_MAX: usize = 4 * TURNS;

/// Streams the same answers through both binaries. Returns what missed its limit.
pub fn run(raddle: &Path, without_spans: &Path) -> Result<Vec<String>> {
    let mock = Mock::start(raddle)?;
    let mut ticks = [0, 0];
    let mut counted = 0;
    for pair in 0..PAIRS_MAX {
        let noise = Noise::begin(&[mock.id()])?;
        let mut of_pair = [0, 0];
        // A, B, B, A, …: neither is always the second.
        for which in [pair % 2, 1 - pair % 2] {
            of_pair[which] = turn([raddle, without_spans][which], &mock)?;
        }
        if noise.end()? > NOISE_MAX {
            continue;
        }
        ticks = [ticks[0] + of_pair[0], ticks[1] + of_pair[1]];
        counted += 1;
        if counted == TURNS {
            break;
        }
    }
    ensure!(
        counted == TURNS,
        "the machine was too busy: others had at most {NOISE_MAX} of it in only {counted} of {PAIRS_MAX} \
         pairs of turns; stop other programs and try again"
    );
    let [with, without] = ticks;
    ensure!(without > 500, "only {without} ticks were measured");
    let ratio = with as f64 / without as f64;
    println!(
        "figure: ticks of {} deltas with spans {with}, without {without}, ratio {ratio:.3}, at most {RATIO_MAX}",
        TURNS * PIECES
    );
    let missed = (ratio > RATIO_MAX).then(|| "processor time of a delta".to_owned());
    Ok(missed.into_iter().collect())
}

/// Runs a turn on a new server. Returns the ticks that it used.
fn turn(binary: &Path, mock: &Mock) -> Result<u64> {
    let mut server = Server::start(binary, &mock.address, "responses")?;
    // The first turn fills caches and starts threads.
    server.turn("MOCK text n=200 size=24 gap_us=200")?;
    let before = process_ticks(&server.id().to_string(), 2)?;
    // 200 µs are enough for a delta, so that each one is a record and a notification of its own.
    server.turn(&format!("MOCK text n={PIECES} size=24 gap_us=200"))?;
    Ok(process_ticks(&server.id().to_string(), 2)? - before)
}
