//! A process on the home, and its client.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use support::{StdioServer, app_server};

/// Timeout of operations without a limit of their own.
const NODE_TIMEOUT: Duration = Duration::from_secs(60);

/// Delay before a client retries an overloaded request.
const PAUSE: Duration = Duration::from_millis(20);

pub struct NodeProcess {
    server: StdioServer,
    /// Received notifications that were not consumed yet.
    notifications: Vec<Value>,
    answers: HashMap<u64, Value>,
}

impl NodeProcess {
    /// Starts the process, and initialises its client.
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let server = StdioServer::start(app_server(raddle, home), &home.join("nodes.stderr"))?;
        let mut node = Self {
            server,
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
        self.server.send_request(method, &params)
    }

    /// Sends any message.
    pub fn send(&mut self, message: &Value) -> Result<()> {
        self.server.send(message)
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
        while let Some(message) = self.server.next_ready() {
            self.sort(message);
        }
        std::mem::take(&mut self.notifications)
    }

    fn receive(&mut self, end: Instant) -> Result<bool> {
        let Some(message) = self.server.next(end)? else {
            return Ok(false);
        };
        self.sort(message);
        Ok(true)
    }

    fn sort(&mut self, message: Value) {
        match (message["id"].as_u64(), message.get("method")) {
            (Some(id), None) => drop(self.answers.insert(id, message)),
            _ => self.notifications.push(message),
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Kills the process, as the system does when memory is short.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Ends the process by closing its stdin. It must exit successfully.
    pub fn end(mut self) -> Result<()> {
        self.server.end().map(drop)
    }
}

/// Returns the input of a turn with this text.
pub fn text_input(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
