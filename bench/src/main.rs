//! Measures the speed of the release binary relative to a minimal server on this wire.
//!
//! Every figure is a ratio within one run: rounds of both servers alternate, so that a busy machine
//! slows both. The program prints the medians beside their limits, with the share of the processors
//! that other programs used meanwhile. If that share is above a tenth, the figures are unreliable
//! and must be measured again.
//!
//! Usage: `speed RADDLE`, with `floor` beside this program, or `speed RADDLE wires` for the latency
//! of model output, or `speed RADDLE spans OTHER` for the cost of spans beside a binary without them.
//! `cargo xtask prove speed`, `wires` and `spans` build and run them.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod noise;
mod pipe;
mod server;
mod socket;
mod spans;
mod wires;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::noise::Noise;
use crate::server::{Program, Transport, WINDOW};

/// Requests that are cheap to answer: the method and its params. The last two check the config
/// files each time; the floor does nothing like it, but the limit applies to them too.
const METHODS: &[(&str, &str)] = &[
    ("account/read", "{}"),
    ("model/list", "{}"),
    ("config/read", "{}"),
];

const ROUNDS: usize = 15;
const ROUND_REQUESTS: usize = 5_000;
const STARTS: usize = 60;
const IDLE: Duration = Duration::from_secs(10);

const THROUGHPUT_RATIO_MIN: f64 = 0.2;
const START_RATIO_MAX: f64 = 8.0;
const IDLE_BYTES_MAX: u64 = 15_000_000;
const BINARY_BYTES_MAX: u64 = 32_600_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let raddle = std::env::args_os().nth(1).map(PathBuf::from);
    let raddle = raddle.context("say where the binary is: `speed RADDLE`")?;
    let mut words = std::env::args_os().skip(2);
    if let Some(what) = words.next() {
        let missed = match what.to_str() {
            Some("wires") => wires::run(&raddle)?,
            Some("spans") => {
                let other = words.next().map(PathBuf::from);
                spans::run(&raddle, &other.context("name the binary without spans")?)?
            }
            _ => bail!("there is no measurement `{}`", what.display()),
        };
        ensure!(missed.is_empty(), "missed: {}", missed.join("; "));
        return Ok(());
    }
    let raddle = Program::Raddle(raddle);
    let floor = Program::Floor(std::env::current_exe()?.with_file_name("floor"));

    let mut missed = Vec::new();
    println!(
        "{:<42}{:>12}{:>12}{:>9}  limit   others",
        "", "floor", "raddle", "ratio"
    );
    for transport in [Transport::Stdio, Transport::Websocket] {
        for request in METHODS {
            let row = throughput([&floor, &raddle], transport, *request)?;
            missed.extend(row.print());
        }
    }
    missed.extend(start(&floor, &raddle)?.print());
    missed.extend(idle(&floor, &raddle)?.print());
    missed.extend(size(&floor, &raddle)?.print());

    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load averages at the end: {}", load.trim());
    ensure!(missed.is_empty(), "missed: {}", missed.join("; "));
    Ok(())
}

/// A line of the report.
struct Row {
    name: String,
    floor: String,
    raddle: String,
    ratio: f64,
    limit: String,
    is_within_limit: bool,
    /// Share of the processors that other programs used; `None` where it does not matter.
    others_share: Option<f64>,
}

impl Row {
    /// Prints the line; returns its name when the limit was missed.
    fn print(self) -> Option<String> {
        let others = self
            .others_share
            .map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
        println!(
            "figure: {:<42}{:>12}{:>12}{:>8.2}×  {:<7} {others}",
            self.name, self.floor, self.raddle, self.ratio, self.limit
        );
        (!self.is_within_limit).then_some(self.name)
    }
}

/// Measures the throughput of cheap requests, with a fixed number in flight.
fn throughput(
    [floor, raddle]: [&Program; 2],
    transport: Transport,
    (method, params): (&str, &str),
) -> Result<Row> {
    let mut floor = floor.start(transport)?;
    let mut raddle = raddle.start(transport)?;
    let mut rates: [Vec<f64>; 2] = Default::default();
    let noise = Noise::begin(&[floor.id(), raddle.id()])?;
    // The first round of each server is not counted: it fills caches and allocates memory.
    for round in 0..=ROUNDS {
        for (server, rates) in [&mut floor, &mut raddle].into_iter().zip(&mut rates) {
            let start = Instant::now();
            server.pipeline(method, params, ROUND_REQUESTS)?;
            if round > 0 {
                rates.push(ROUND_REQUESTS as f64 / start.elapsed().as_secs_f64());
            }
        }
    }
    let others = noise.end()?;
    let ratio = median_ratio(&rates[1], &rates[0]);
    let [floor, raddle] = rates.map(|rates| format!("{:.0} k/s", median(rates) / 1e3));
    Ok(Row {
        name: format!("{method}, {transport}, {WINDOW} in flight"),
        floor,
        raddle,
        ratio,
        limit: format!("≥ {THROUGHPUT_RATIO_MIN}×"),
        is_within_limit: ratio >= THROUGHPUT_RATIO_MIN,
        others_share: Some(others),
    })
}

/// Measures the time from the start of the process to the response to `initialize`, over stdio, in
/// a fresh home.
fn start(floor: &Program, raddle: &Program) -> Result<Row> {
    let mut times: [Vec<f64>; 2] = Default::default();
    let noise = Noise::begin(&[])?;
    for _ in 0..STARTS {
        for (program, times) in [floor, raddle].into_iter().zip(&mut times) {
            let start_time = Instant::now();
            let server = program.start(Transport::Stdio)?;
            times.push(start_time.elapsed().as_secs_f64());
            drop(server);
        }
    }
    let others = noise.end()?;
    let ratio = median_ratio(&times[1], &times[0]);
    let [floor, raddle] = times.map(|times| format!("{:.1} ms", median(times) * 1e3));
    Ok(Row {
        name: format!("spawn → initialize, {STARTS} pairs"),
        floor,
        raddle,
        ratio,
        limit: format!("≤ {START_RATIO_MAX}×"),
        is_within_limit: ratio <= START_RATIO_MAX,
        others_share: Some(others),
    })
}

/// Measures resident memory after an idle period.
fn idle(floor: &Program, raddle: &Program) -> Result<Row> {
    let servers = [
        floor.start(Transport::Stdio)?,
        raddle.start(Transport::Stdio)?,
    ];
    thread::sleep(IDLE);
    let mut bytes = [0; 2];
    for (server, bytes) in servers.iter().zip(&mut bytes) {
        *bytes = server.resident_bytes()?;
    }
    Ok(bytes_row(
        format!("resident, {} s after initialize", IDLE.as_secs()),
        bytes,
        IDLE_BYTES_MAX,
    ))
}

fn size(floor: &Program, raddle: &Program) -> Result<Row> {
    let mut bytes = [0; 2];
    for (program, bytes) in [floor, raddle].into_iter().zip(&mut bytes) {
        *bytes = fs::metadata(program.path())?.len();
    }
    Ok(bytes_row("binary".to_owned(), bytes, BINARY_BYTES_MAX))
}

fn bytes_row(name: String, [floor, raddle]: [u64; 2], max: u64) -> Row {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    Row {
        name,
        floor: megabytes(floor),
        raddle: megabytes(raddle),
        ratio: raddle as f64 / floor as f64,
        limit: format!("< {}", megabytes(max)),
        is_within_limit: raddle < max,
        others_share: None,
    }
}

/// Returns the median of the ratios of neighbouring rounds: a disturbance affects only its own
/// pair.
fn median_ratio(of: &[f64], to: &[f64]) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_neighbours() {
        // The machine was slow in the second pair, for both.
        assert_eq!(median_ratio(&[2.0, 0.2, 2.0], &[4.0, 0.4, 4.0]), 0.5);
    }
}
