//! Processor time of a streamed delta, with the spans of the log and without.
//!
//! Both binaries are built from one commit; in the other one, `tracing` is compiled out. Turns of
//! both alternate, so that a busy machine slows both. The log is at its default level, at which a
//! delta creates no span.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::noise::{Noise, process_ticks};
use crate::wires::{Mock, Server};

/// Turns of each binary. They use about 700 ticks, so one tick matters little.
const TURNS: usize = 60;
/// Deltas of a turn.
const PIECES: usize = 5000;
/// Limit of the ratio of the two times.
const RATIO_MAX: f64 = 1.02;

/// Streams the same answers through both binaries. Returns what missed its limit.
pub fn run(raddle: &Path, without_spans: &Path) -> Result<Vec<String>> {
    // 200 µs are enough for a delta, so that each one is a record and a notification of its own.
    let prompt = format!("MOCK text n={PIECES} size=24 gap_us=200");
    let mock = Mock::start(raddle)?;
    let noise = Noise::begin(&[])?;
    let mut ticks = [0, 0];
    for turn in 0..2 * TURNS {
        // A, B, B, A, …: neither is always the second.
        let which = (turn + turn / 2) % 2;
        let binary = [raddle, without_spans][which];
        let mut server = Server::start(binary, &mock.address, "responses")?;
        // The first turn fills caches and starts threads.
        server.turn("MOCK text n=200 size=24 gap_us=200")?;
        let before = process_ticks(&server.id().to_string(), 2)?;
        server.turn(&prompt)?;
        ticks[which] += process_ticks(&server.id().to_string(), 2)? - before;
    }
    let [with, without] = ticks;
    ensure!(without > 500, "only {without} ticks were measured");
    let ratio = with as f64 / without as f64;
    println!(
        "figure: ticks of {} deltas with spans {with}, without {without}, ratio {ratio:.3}, at most {RATIO_MAX}",
        TURNS * PIECES
    );
    println!("others had {:.0} % of the machine", noise.end()? * 100.0);
    let missed = (ratio > RATIO_MAX).then(|| "processor time of a delta".to_owned());
    Ok(missed.into_iter().collect())
}
