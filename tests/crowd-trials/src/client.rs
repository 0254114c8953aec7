//! A small JSON-RPC client.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use support::Websocket;

pub struct CrowdClient {
    pub wire: Websocket,
    next_id: u64,
}

impl CrowdClient {
    /// Initializes a client that receives record numbers.
    pub fn initialized(wire: Websocket) -> Result<Self> {
        let mut client = Self { wire, next_id: 0 };
        let capabilities = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        let info = json!({"name": "crowd", "version": "1"});
        client.request(
            "initialize",
            json!({"clientInfo": info, "capabilities": capabilities}),
        )?;
        Ok(client)
    }

    pub fn start_thread(&mut self) -> Result<String> {
        self.start_thread_with(json!({}))
    }

    pub fn start_thread_with(&mut self, params: Value) -> Result<String> {
        let answer = self.request("thread/start", params)?;
        let id = answer["thread"]["id"].as_str();
        Ok(id.context("a thread has an id")?.to_owned())
    }

    /// Starts a turn with a text.
    pub fn start_turn(&mut self, thread: &str, text: &str) -> Result<()> {
        let input = json!([{"type": "text", "text": text}]);
        let params = json!({"threadId": thread, "input": input});
        self.request("turn/start", params).map(drop)
    }

    /// Subscribes to a thread from its first record on.
    pub fn subscribe(&mut self, thread: &str) -> Result<()> {
        let params = json!({"threadId": thread, "afterSeq": 0});
        self.request("thread/resume", params).map(drop)
    }

    /// Sends a request and waits for its response. Skips earlier messages.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        match self.try_request(method, params)? {
            Ok(result) => Ok(result),
            Err(error) => bail!("{method} was refused: {error}"),
        }
    }

    /// Sends a request whose response may be an error.
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>> {
        let id = self.send(method, params)?;
        loop {
            let mut message = self.receive()?;
            if message["id"] != id || message["method"] != Value::Null {
                continue;
            }
            return Ok(match message.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(message["error"].take()),
            });
        }
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"id": id, "method": method, "params": params});
        self.wire.send(&request.to_string())?;
        Ok(id)
    }

    /// Returns the next message.
    pub fn receive(&mut self) -> Result<Value> {
        Ok(serde_json::from_slice(self.wire.receive()?)?)
    }
}
