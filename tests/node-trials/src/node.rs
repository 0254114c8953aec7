//! One process on the home, and its client.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::ChildGuard;

/// How long anything may take that has no limit of its own.
const NODE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a client waits that is told to come back.
const PAUSE: Duration = Duration::from_millis(20);

pub struct NodeProcess {
    process: ChildGuard,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    /// What was told, and nobody has looked at.
    told: Vec<Value>,
    answers: HashMap<u64, Value>,
}

impl NodeProcess {
    /// Starts it, and introduces its client.
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let mut process = ChildGuard::start(raddle, &["app-server"], home, "nodes.stderr")?;
        let stdin = process.0.stdin.take();
        let stdout = process.0.stdout.take().context("a pipe")?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut node = Self {
            process,
            stdin,
            messages,
            last_id: 0,
            told: Vec::new(),
            answers: HashMap::new(),
        };
        let me = json!({"name": "node-trials", "version": env!("CARGO_PKG_VERSION")});
        let asked = node.ask("initialize", json!({"clientInfo": me}))?;
        if let Err(error) = node.answer(asked)? {
            bail!("the client was refused: {error}");
        }
        Ok(node)
    }

    /// Sends a request, and gives its id.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last_id += 1;
        let request = json!({"id": self.last_id, "method": method, "params": params});
        self.say(&request)?;
        Ok(self.last_id)
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the process was ended")?;
        writeln!(stdin, "{message}").context("the process takes no more")
    }

    /// The answer to a request: its result, or its error.
    pub fn answer(&mut self, id: u64) -> Result<Result<Value, Value>> {
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            if let Some(mut answer) = self.answers.remove(&id) {
                return Ok(match answer["error"].take() {
                    Value::Null => Ok(answer["result"].take()),
                    error => Err(error),
                });
            }
            if !self.take_one(end)? {
                bail!("request {id} was not answered in time");
            }
        }
    }

    /// A request and its result. Who is told to come back later does so.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            let asked = self.ask(method, params.clone())?;
            match self.answer(asked)? {
                Ok(result) => return Ok(result),
                Err(error) if error["code"] == -32001 && Instant::now() < end => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => bail!("{method} was refused: {error}"),
            }
        }
    }

    /// Waits until something was told that is looked for.
    pub fn hear<F: Fn(&Value) -> bool>(&mut self, what: &str, is_it: F) -> Result<Value> {
        let end = Instant::now() + NODE_TIMEOUT;
        let mut seen = 0;
        loop {
            if let Some(at) = self.told[seen..].iter().position(&is_it) {
                let mut told = self.told.drain(..=seen + at);
                return told.next_back().context("what was found");
            }
            seen = self.told.len();
            if !self.take_one(end)? {
                bail!("{what} was not told in time");
            }
        }
    }

    /// Everything that was told and came so far.
    pub fn told(&mut self) -> Vec<Value> {
        while let Ok(message) = self.messages.try_recv() {
            self.sort(message);
        }
        std::mem::take(&mut self.told)
    }

    fn take_one(&mut self, end: Instant) -> Result<bool> {
        let left = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => self.sort(message),
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => bail!("the process ended"),
        }
        Ok(true)
    }

    fn sort(&mut self, message: Value) {
        match (message["id"].as_u64(), message.get("method")) {
            (Some(id), None) => drop(self.answers.insert(id, message)),
            _ => self.told.push(message),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Kills it, as the system does when memory is short.
    pub fn kill(&mut self) -> Result<()> {
        self.process.0.kill()?;
        self.process.0.wait()?;
        Ok(())
    }

    /// Closes its stdin. It ends by itself.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for a good end.
    pub fn end(mut self) -> Result<()> {
        self.close();
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("a process did not end"),
            }
        }
        let status = self.process.0.wait()?;
        if !status.success() {
            bail!("a process ended with {status}");
        }
        Ok(())
    }
}

/// The text of a turn.
pub fn says(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
