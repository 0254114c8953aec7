//! A client over the server's unix socket, which can disconnect and reconnect.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::Websocket;

use crate::server::initialize_params;

/// Timeout for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A client that disconnects when it is dropped.
pub struct SocketClient {
    wire: Websocket,
    next_id: u64,
    /// Requests of the server that came while the client waited for something else.
    requests: Vec<Value>,
}

impl SocketClient {
    /// Initializes the connection.
    pub fn initialized(wire: Websocket) -> Result<Self> {
        let mut client = Self {
            wire,
            next_id: 0,
            requests: Vec::new(),
        };
        client.call("initialize", &initialize_params())?;
        client.send(&json!({"method": "initialized"}))?;
        Ok(client)
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let message = self.next(end)?;
            let mut message = message.with_context(|| format!("no answer to {method}"))?;
            if message.get("method").is_some() {
                if message.get("id").is_some() {
                    self.requests.push(message);
                }
                continue;
            }
            if message["id"] == id {
                ensure!(
                    message.get("error").is_none(),
                    "{method} was refused: {message}"
                );
                return Ok(message["result"].take());
            }
        }
    }

    /// Returns the next request of the server.
    pub fn next_request(&mut self) -> Result<Value> {
        let end = Instant::now() + ANSWER_TIMEOUT;
        while self.requests.is_empty() {
            let message = self.next(end)?.context("no request was sent")?;
            if message.get("id").is_some() && message.get("method").is_some() {
                self.requests.push(message);
            }
        }
        Ok(self.requests.remove(0))
    }

    pub fn send(&mut self, message: &Value) -> Result<()> {
        self.wire.send(&message.to_string())
    }

    /// Returns the next message, if it comes in time.
    fn next(&mut self, end: Instant) -> Result<Option<Value>> {
        let text = self.wire.receive_before(end)?;
        Ok(text.map(serde_json::from_slice).transpose()?)
    }
}
