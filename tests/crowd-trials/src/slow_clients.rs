//! Clients that read little or nothing, beside ordinary clients.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use support::WebsocketEvent;

use crate::client::CrowdClient;
use crate::fold::TimedFold;
use crate::server::{CrowdServer, ServerEndpoint};

/// Bytes that a slow client reads at a time.
const SLOW_READ_BYTES: usize = 1024;

/// Pause between reads of a slow client.
const PAUSE: Duration = Duration::from_secs(1);

/// A client that reads a kilobyte a second, until it may hurry.
pub struct SlowClient {
    hurry: Sender<()>,
    reading: JoinHandle<Result<(CrowdClient, TimedFold)>>,
}

impl SlowClient {
    pub fn subscribe(server: &CrowdServer, endpoint: ServerEndpoint, thread: &str) -> Result<Self> {
        let mut client = server.client(endpoint)?;
        client.subscribe(thread)?;
        let (hurry, hurried) = channel();
        let reading = thread::spawn(move || read(client, &hurried));
        Ok(Self { hurry, reading })
    }

    /// Makes it read as fast as it can. Returns its final state.
    pub fn hurry(self) -> Result<TimedFold> {
        drop(self.hurry);
        let read = self.reading.join();
        let (_, fold) = read.map_err(|_| anyhow::anyhow!("the slow one panicked"))??;
        Ok(fold)
    }

    /// Whether it still reads.
    pub fn is_reading(&self) -> bool {
        !self.reading.is_finished()
    }
}

fn read(mut client: CrowdClient, hurried: &Receiver<()>) -> Result<(CrowdClient, TimedFold)> {
    let start = Instant::now();
    while hurried.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        ensure!(
            client.wire.read(SLOW_READ_BYTES)? > 0,
            "a slow one that reads was cut off after {:.0?}",
            start.elapsed()
        );
    }
    let mut fold = TimedFold::default();
    read_turn(&mut client, &mut fold).context("the slow one")?;
    Ok((client, fold))
}

/// Receives notifications of a thread until its turn is over.
pub fn read_turn(client: &mut CrowdClient, fold: &mut TimedFold) -> Result<()> {
    while !fold.is_over() {
        match client.wire.next_event()? {
            WebsocketEvent::Text(text, received_at) => fold.apply(text, received_at)?,
            other => return Err(other.unexpected()),
        }
    }
    Ok(())
}

/// A client that subscribes and never reads.
pub struct StuckClient(CrowdClient);

impl StuckClient {
    pub fn subscribe(server: &CrowdServer, endpoint: ServerEndpoint, thread: &str) -> Result<Self> {
        let mut client = server.client(endpoint)?;
        client.subscribe(thread)?;
        Ok(Self(client))
    }

    /// Reads everything up to the close. Returns its code and reason. The notifications before it
    /// must be consistent.
    pub fn read_to_close(mut self) -> Result<(u16, String)> {
        let mut fold = TimedFold::default();
        loop {
            match self.0.wire.next_event()? {
                WebsocketEvent::Text(text, _) => fold.apply(text, 0)?,
                WebsocketEvent::Close(code, reason) => return Ok((code, reason)),
                WebsocketEvent::End => bail!("it was let go without a word"),
            }
        }
    }
}

/// The process that started the server, whose pipe is full.
pub struct Parent {
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Parent {
    pub fn initialized(stdin: ChildStdin, stdout: ChildStdout) -> Result<Self> {
        let lines = BufReader::new(stdout).lines();
        let mut parent = Self { stdin, lines };
        let info = json!({"name": "parent", "version": "1"});
        let extensions = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        let params = json!({"clientInfo": info, "capabilities": extensions});
        parent.request("initialize", &params)?;
        Ok(parent)
    }

    /// Subscribes to a thread, and reads nothing from then on.
    pub fn subscribe(&mut self, thread: &str) -> Result<()> {
        self.request("thread/resume", &json!({"threadId": thread, "afterSeq": 0}))
    }

    /// Reads to the end of the turn.
    pub fn read_turn(&mut self) -> Result<TimedFold> {
        let mut fold = TimedFold::default();
        while !fold.is_over() {
            let line = self.lines.next().context("stdout ended")??;
            fold.apply(line.as_bytes(), 0)?;
        }
        Ok(fold)
    }

    fn request(&mut self, method: &str, params: &serde_json::Value) -> Result<()> {
        let request = json!({"id": method, "method": method, "params": params});
        writeln!(self.stdin, "{request}")?;
        let answer = format!("{{\"id\":\"{method}\",\"result\"");
        loop {
            let line = self.lines.next().context("stdout ended")??;
            if line.starts_with(&answer) {
                return Ok(());
            }
            ensure!(!line.contains("\"error\":{\"code\""), "{method}: {line}");
        }
    }
}
