//! Those who sit beside ordinary clients and take little or nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::client::CrowdClient;
use crate::fold::Fold;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::wire::WireEvent;

/// How much the slow one reads at a time,
const SIP_BYTES: usize = 1024;

/// and how long it waits before the next.
const PAUSE: Duration = Duration::from_secs(1);

/// One who reads a kilobyte a second, until it may hurry.
pub struct SlowClient {
    hurry: Sender<()>,
    reading: JoinHandle<Result<(CrowdClient, Fold)>>,
}

impl SlowClient {
    pub fn join(server: &CrowdServer, door: ServerEndpoint, thread: &str) -> Result<Self> {
        let mut client = server.client(door)?;
        client.join(thread)?;
        let (hurry, hurried) = channel();
        let reading = thread::spawn(move || read(client, &hurried));
        Ok(Self { hurry, reading })
    }

    /// Lets it read as fast as it can; what it knows in the end.
    pub fn hurry(self) -> Result<Fold> {
        drop(self.hurry);
        let read = self.reading.join();
        let (_, fold) = read.map_err(|_| anyhow::anyhow!("the slow one panicked"))??;
        Ok(fold)
    }

    /// Whether it still reads.
    pub fn is_there(&self) -> bool {
        !self.reading.is_finished()
    }
}

fn read(mut client: CrowdClient, hurried: &Receiver<()>) -> Result<(CrowdClient, Fold)> {
    let begun = Instant::now();
    while hurried.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        ensure!(
            client.wire.read(SIP_BYTES)? > 0,
            "a slow one that reads was cut off after {:.0?}",
            begun.elapsed()
        );
    }
    let mut fold = Fold::default();
    hear_out(&mut client, &mut fold).context("the slow one")?;
    Ok((client, fold))
}

/// Hears of a thread until its turn is over.
pub fn hear_out(client: &mut CrowdClient, fold: &mut Fold) -> Result<()> {
    while !fold.is_over() {
        match client.wire.next()? {
            WireEvent::Text(text, came_at) => fold.hear(text, came_at)?,
            WireEvent::Close(code, reason) => bail!("closed with {code}: {reason}"),
            WireEvent::End => bail!("the connection ended without a word"),
        }
    }
    Ok(())
}

/// One who joins and never reads.
pub struct StuckClient(CrowdClient);

impl StuckClient {
    pub fn join(server: &CrowdServer, door: ServerEndpoint, thread: &str) -> Result<Self> {
        let mut client = server.client(door)?;
        client.join(thread)?;
        Ok(Self(client))
    }

    /// Reads everything after all; with what it was let go. What it was told up to then must make sense.
    pub fn let_go(mut self) -> Result<(u16, String)> {
        let mut fold = Fold::default();
        loop {
            match self.0.wire.next()? {
                WireEvent::Text(text, _) => fold.hear(text, 0)?,
                WireEvent::Close(code, reason) => return Ok((code, reason)),
                WireEvent::End => bail!("it was let go without a word"),
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
    pub fn introduced(stdin: ChildStdin, stdout: ChildStdout) -> Result<Self> {
        let lines = BufReader::new(stdout).lines();
        let mut parent = Self { stdin, lines };
        let info = json!({"name": "parent", "version": "1"});
        let extensions = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        let params = json!({"clientInfo": info, "capabilities": extensions});
        parent.ask("initialize", &params)?;
        Ok(parent)
    }

    /// Joins a thread, and reads nothing from then on.
    pub fn join(&mut self, thread: &str) -> Result<()> {
        self.ask("thread/resume", &json!({"threadId": thread, "afterSeq": 0}))
    }

    /// Reads on to the end of the turn.
    pub fn hear_out(&mut self) -> Result<Fold> {
        let mut fold = Fold::default();
        while !fold.is_over() {
            let line = self.lines.next().context("stdout ended")??;
            fold.hear(line.as_bytes(), 0)?;
        }
        Ok(fold)
    }

    fn ask(&mut self, method: &str, params: &serde_json::Value) -> Result<()> {
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
