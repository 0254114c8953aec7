//! A process on the home, and its client.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::ChildGuard;

/// Timeout of operations without a limit of their own.
const NODE_TIMEOUT: Duration = Duration::from_secs(60);

/// Delay before a client retries an overloaded request.
const PAUSE: Duration = Duration::from_millis(20);

pub struct NodeProcess {
    process: ChildGuard,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    /// Received notifications that were not consumed yet.
    notifications: Vec<Value>,
    answers: HashMap<u64, Value>,
}

impl NodeProcess {
    /// Starts the process, and initialises its client.
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
            notifications: Vec::new(),
            answers: HashMap::new(),
        };
        let me = json!({"name": "node-trials", "version": env!("CARGO_PKG_VERSION")});
        let request_id = node.send_request("initialize", json!({"clientInfo": me}))?;
        if let Err(error) = node.answer(request_id)? {
            bail!("initialize failed: {error}");
        }
        Ok(node)
    }

    /// Sends a request, and returns its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last_id += 1;
        let request = json!({"id": self.last_id, "method": method, "params": params});
        self.send(&request)?;
        Ok(self.last_id)
    }

    /// Sends any message.
    pub fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the process was ended")?;
        writeln!(stdin, "{message}").context("the process takes no more")
    }

    /// Returns the response to a request: its result, or its error.
    pub fn answer(&mut self, id: u64) -> Result<Result<Value, Value>> {
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            if let Some(mut answer) = self.answers.remove(&id) {
                return Ok(match answer["error"].take() {
                    Value::Null => Ok(answer["result"].take()),
                    error => Err(error),
                });
            }
            if !self.receive(end)? {
                bail!("request {id} was not answered in time");
            }
        }
    }

    /// Sends a request and returns its result. Retries while the server is overloaded.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            let request_id = self.send_request(method, params.clone())?;
            match self.answer(request_id)? {
                Ok(result) => return Ok(result),
                Err(error) if error["code"] == -32001 && Instant::now() < end => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => bail!("{method} was refused: {error}"),
            }
        }
    }

    /// Waits for a notification that matches.
    pub fn wait_for_notification<F: Fn(&Value) -> bool>(
        &mut self,
        what: &str,
        is_it: F,
    ) -> Result<Value> {
        let end = Instant::now() + NODE_TIMEOUT;
        let mut checked = 0;
        loop {
            if let Some(at) = self.notifications[checked..].iter().position(&is_it) {
                let mut drained = self.notifications.drain(..=checked + at);
                return drained.next_back().context("what was found");
            }
            checked = self.notifications.len();
            if !self.receive(end)? {
                bail!("{what} did not arrive in time");
            }
        }
    }

    /// Returns all notifications received so far.
    pub fn take_notifications(&mut self) -> Vec<Value> {
        while let Ok(message) = self.messages.try_recv() {
            self.sort(message);
        }
        std::mem::take(&mut self.notifications)
    }

    fn receive(&mut self, end: Instant) -> Result<bool> {
        let remaining = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(remaining) {
            Ok(message) => self.sort(message),
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => bail!("the process ended"),
        }
        Ok(true)
    }

    fn sort(&mut self, message: Value) {
        match (message["id"].as_u64(), message.get("method")) {
            (Some(id), None) => drop(self.answers.insert(id, message)),
            _ => self.notifications.push(message),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Kills the process, as the system does when memory is short.
    pub fn kill(&mut self) -> Result<()> {
        self.process.0.kill()?;
        self.process.0.wait()?;
        Ok(())
    }

    /// Closes stdin, after which the process ends by itself.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for a successful exit.
    pub fn end(mut self) -> Result<()> {
        self.close();
        let end = Instant::now() + NODE_TIMEOUT;
        loop {
            let remaining = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(remaining) {
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

/// Returns the input of a turn with this text.
pub fn text_input(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
