//! Latency of model output, from the vendor's socket to the client, on each wire.
//!
//! The mock stamps each delta with the time of sending. A bare reader of its stream and a client of
//! the server compare the stamps with the time of arrival; the ratio is the overhead of the server.
//! The server stores every delta in between, so the ratio is never 1. The program also measures the
//! time from `turn/start` to the call of the vendor.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{ChildGuard, now_us};
use tempfile::TempDir;

use crate::noise::Noise;
use crate::pipe::Pipe;
use crate::server::MessageChannel;

/// Deltas of the measured answer.
const PIECES: usize = 1000;
/// First measurements of a series, which are not counted.
const WARM: usize = 50;
/// Measured turns, after the warm ones.
const TURNS: usize = 60;
/// Limit of the median from `turn/start` to the first byte of the call.
const FIRST_BYTE_MAX: Duration = Duration::from_millis(5);
/// Number of digits of the microseconds since 1970, for the next 260 years.
const STAMP_DIGITS: usize = 16;

/// Name of a wire, its path below the base URL, and the request body.
type Wire = (&'static str, &'static str, fn(&str) -> Value);

const WIRES: [Wire; 4] = [
    (
        "responses",
        "/responses",
        |prompt| json!({ "model": "mock", "stream": true, "input": prompt }),
    ),
    (
        "chat",
        "/chat/completions",
        |prompt| json!({ "model": "mock", "stream": true, "messages": [{ "role": "user", "content": prompt }] }),
    ),
    (
        "messages",
        "/messages",
        |prompt| json!({ "model": "mock", "stream": true, "max_tokens": 9, "messages": [{ "role": "user", "content": prompt }] }),
    ),
    (
        "gemini",
        "/models/mock:streamGenerateContent",
        |prompt| json!({ "contents": [{ "role": "user", "parts": [{ "text": prompt }] }] }),
    ),
];

/// Runs all measurements. Returns the names of those that missed their limit; only the time to the
/// vendor has one.
pub fn run(raddle: &Path) -> Result<Vec<String>> {
    let prompt = format!("MOCK text n={PIECES} size=24 gap_us=1000 stamp=1");
    println!(
        "{:<42}{:>12}{:>12}{:>9}",
        "latency of a delta after its stamp", "bare", "raddle", "ratio"
    );
    let noise = Noise::begin(&[])?;
    for (wire, path, request_body) in WIRES {
        let mock = Mock::start(raddle)?;
        let bare = sorted(read_bare(&mock.address, path, &request_body(&prompt))?)?;
        let server = Server::start(raddle, &mock.address, wire)?;
        let through = sorted(read_through(server, &prompt)?)?;
        for (name, share) in [("p50", 50), ("p99", 99)] {
            let [bare, through] = [&bare, &through].map(|it| it[it.len() * share / 100]);
            let row = format!("{wire}, {name}");
            let ratio = through / bare;
            println!("figure: {row:<42}{bare:>9.0} µs{through:>9.0} µs{ratio:>8.2}×");
        }
    }
    let mut missed = Vec::new();
    let times = sorted(first_bytes(raddle)?)?;
    let [p50, p99] = [50, 99].map(|share| times[times.len() * share / 100]);
    let limit = FIRST_BYTE_MAX.as_micros();
    println!(
        "figure: turn/start → first byte to the vendor, warm: p50 {p50:.0} µs, p99 {p99:.0} µs, limit of p50 {limit} µs"
    );
    if p50 >= limit as f64 {
        missed.push("the first byte to the vendor".to_owned());
    }
    println!("others had {:.0} % of the machine", noise.end()? * 100.0);
    Ok(missed)
}

/// A process of `raddle mock`. Dropping this value ends it.
pub struct Mock {
    process: ChildGuard,
    pub address: String,
}

impl Mock {
    pub fn id(&self) -> u32 {
        self.process.child.id()
    }

    pub fn start(raddle: &Path) -> Result<Self> {
        let mut command = Command::new(raddle);
        command
            .args(["mock", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = ChildGuard::spawn(&mut command)?;
        let mut line = String::new();
        let output = process.child.stdout.take().context("no stdout")?;
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://");
        let address = address.and_then(|it| it.strip_suffix("/v1"));
        let address = address.context("the mock did not say where it listens")?;
        let address = address.to_owned();
        Ok(Self { process, address })
    }
}

/// Reads the stream in the cheapest way: a socket, and a search for stamps.
fn read_bare(address: &str, path: &str, request: &Value) -> Result<Vec<f64>> {
    let body = request.to_string();
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let length = body.len();
    let head =
        format!("POST /v1{path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut latencies = StampLatencies::default();
    let mut chunk = vec![0; 64 << 10];
    while latencies.times.len() < PIECES {
        let count = stream.read(&mut chunk)?;
        ensure!(
            count > 0,
            "the mock ended after {} pieces",
            latencies.times.len()
        );
        latencies.take(&chunk[..count]);
    }
    // Some wires repeat the complete text at the end.
    latencies.times.truncate(PIECES);
    Ok(latencies.times)
}

/// Reads the same text as a turn of a thread.
fn read_through(mut server: Server, prompt: &str) -> Result<Vec<f64>> {
    server.start_turn(prompt)?;
    let mut latencies = StampLatencies::default();
    let mut is_over = false;
    while !is_over {
        server.pipe.read(&mut |line| {
            if has(line, "\"item/agentMessage/delta\"") {
                latencies.take(line);
            }
            is_over |= has(line, "\"turn/completed\"");
            Ok(())
        })?;
    }
    let count = latencies.times.len();
    ensure!(count == PIECES, "{count} of {PIECES} deltas were received");
    Ok(latencies.times)
}

/// Latencies of the received deltas, in microseconds after their stamps.
#[derive(Default)]
struct StampLatencies {
    times: Vec<f64>,
    /// End of the received bytes, where a stamp may have begun.
    rest: Vec<u8>,
}

impl StampLatencies {
    fn take(&mut self, bytes: &[u8]) {
        let now = now_us();
        self.rest.extend_from_slice(bytes);
        let mut consumed = 0;
        for at in memchr::memchr_iter(b';', &self.rest) {
            let Some(begin) = at.checked_sub(STAMP_DIGITS) else {
                continue;
            };
            let digits = std::str::from_utf8(&self.rest[begin..at]);
            let stamp = digits.ok().and_then(|it| it.parse::<u64>().ok());
            if let Some(stamp) = stamp.filter(|it| *it <= now) {
                self.times.push((now - stamp) as f64);
            }
            consumed = at + 1;
        }
        let keep = self.rest.len().saturating_sub(STAMP_DIGITS);
        self.rest.drain(..consumed.max(keep));
    }
}

/// Sorts the times without the first ones, which were measured with cold caches.
fn sorted(times: Vec<f64>) -> Result<Vec<f64>> {
    let mut times = times;
    ensure!(
        times.len() > WARM,
        "too few deltas were received: {}",
        times.len()
    );
    times.drain(..WARM.min(times.len() / 2));
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// A server with one thread. Dropping this value ends it.
pub struct Server {
    process: ChildGuard,
    pipe: Pipe,
    thread: String,
    last_id: u64,
    _home: TempDir,
}

impl Server {
    pub fn start(raddle: &Path, address: &str, wire: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let config = format!(
            "model = \"mock\"\nmodel_provider = \"mock\"\n[model_providers.mock]\n\
             base_url = \"http://{address}/v1\"\nwire_api = \"{wire}\"\n"
        );
        fs::write(home.path().join("config.toml"), config)?;
        let mut command = Command::new(raddle);
        command
            .arg("app-server")
            .env_clear()
            .env("RADDLE_HOME", home.path())
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = ChildGuard::spawn(&mut command)?;
        let pipe = Pipe::new(&mut process.child)?;
        let mut server = Self {
            process,
            pipe,
            thread: String::new(),
            last_id: 0,
            _home: home,
        };
        let client = json!({ "clientInfo": { "name": "speed", "version": "1" } });
        server.call("initialize", &client)?;
        let started = server.call("thread/start", &json!({}))?;
        let id = started["thread"]["id"].as_str().context("no thread")?;
        id.clone_into(&mut server.thread);
        Ok(server)
    }

    pub fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Runs a turn to its end.
    pub fn turn(&mut self, prompt: &str) -> Result<()> {
        self.start_turn(prompt)?;
        let mut is_over = false;
        while !is_over {
            self.pipe.read(&mut |line| {
                is_over |= has(line, "\"turn/completed\"");
                Ok(())
            })?;
        }
        Ok(())
    }

    fn start_turn(&mut self, prompt: &str) -> Result<()> {
        let input = json!([{ "type": "text", "text": prompt }]);
        let params = json!({ "threadId": self.thread, "input": input });
        self.send("turn/start", &params)
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.last_id += 1;
        let message = json!({ "id": self.last_id, "method": method, "params": params });
        let mut bytes = Vec::new();
        self.pipe.frame(&message.to_string(), &mut bytes);
        self.pipe.write(&bytes)
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(method, params)?;
        let mut answer = Value::Null;
        while answer.is_null() {
            let id = self.last_id;
            self.pipe.read(&mut |line| {
                let message: Value = serde_json::from_slice(line)?;
                if message["id"] == id {
                    answer = message["result"].clone();
                    ensure!(!answer.is_null(), "{method}: {message}");
                }
                Ok(())
            })?;
        }
        Ok(answer)
    }
}

/// Measures the time from just before `turn/start` is written to the first byte of the call, in
/// microseconds. The connection is reused between turns.
fn first_bytes(raddle: &Path) -> Result<Vec<f64>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let (sender, call_times) = std::sync::mpsc::channel();
    thread::spawn(move || -> Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        while let Some(at) = take_call(&mut stream)? {
            sender.send(at)?;
            let event = json!({ "choices": [{ "index": 0, "delta": { "content": "So." }, "finish_reason": "stop" }] });
            let body = format!("data: {event}\n\ndata: [DONE]\n\n");
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(format!("{head}{body}").as_bytes())?;
        }
        Ok(())
    });
    let mut server = Server::start(raddle, &address, "chat")?;
    let mut times = Vec::new();
    for _ in 0..WARM + TURNS {
        let start = Instant::now();
        server.turn("hello")?;
        let at = call_times.recv_timeout(Duration::from_secs(10))?;
        times.push(at.duration_since(start).as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// Reads one call, and returns the arrival time of its first byte; `None` when the stream has
/// ended.
fn take_call(stream: &mut TcpStream) -> Result<Option<Instant>> {
    let mut call = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let mut first = None;
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        let first = *first.get_or_insert_with(Instant::now);
        call.extend_from_slice(&chunk[..count]);
        let Some(head) = memchr::memmem::find(&call, b"\r\n\r\n") else {
            continue;
        };
        let text = String::from_utf8_lossy(&call[..head]).to_lowercase();
        let length = text
            .lines()
            .find_map(|it| it.strip_prefix("content-length:"));
        let length: usize = length.context("a call without a length")?.trim().parse()?;
        if call.len() >= head + 4 + length {
            return Ok(Some(first));
        }
    }
}

fn has(line: &[u8], text: &str) -> bool {
    memchr::memmem::find(line, text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_found_wherever_the_bytes_are_cut() {
        let stamp = now_us() - 1000;
        let text = format!("{{\"delta\":\"{stamp};abc{stamp};def\"}};");
        for at in 0..text.len() {
            let (before, after) = text.as_bytes().split_at(at);
            let mut latencies = StampLatencies::default();
            latencies.take(before);
            latencies.take(after);
            assert_eq!(latencies.times.len(), 2, "{at}");
        }
    }
}
