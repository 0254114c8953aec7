//! A small client.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::wire::{TestWire, WireEvent};

pub struct CrowdClient {
    pub wire: TestWire,
    next_id: u64,
}

impl CrowdClient {
    /// One who has introduced itself, and is told the numbers of records.
    pub fn introduced(wire: TestWire) -> Result<Self> {
        let mut client = Self { wire, next_id: 0 };
        let capabilities = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        let info = json!({"name": "crowd", "version": "1"});
        client.ask(
            "initialize",
            json!({"clientInfo": info, "capabilities": capabilities}),
        )?;
        Ok(client)
    }

    pub fn start_thread(&mut self) -> Result<String> {
        self.start_thread_with(json!({}))
    }

    pub fn start_thread_with(&mut self, params: Value) -> Result<String> {
        let answer = self.ask("thread/start", params)?;
        let id = answer["thread"]["id"].as_str();
        Ok(id.context("a thread has an id")?.to_owned())
    }

    /// Says something, to which the model answers.
    pub fn say(&mut self, thread: &str, text: &str) -> Result<()> {
        let input = json!([{"type": "text", "text": text}]);
        let params = json!({"threadId": thread, "input": input});
        self.ask("turn/start", params).map(drop)
    }

    /// Hears of a thread from its first record on.
    pub fn join(&mut self, thread: &str) -> Result<()> {
        let params = json!({"threadId": thread, "afterSeq": 0});
        self.ask("thread/resume", params).map(drop)
    }

    /// Asks, and waits for the answer. What comes before it is passed over.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        match self.ask_for(method, params)? {
            Ok(result) => Ok(result),
            Err(error) => bail!("{method} was refused: {error}"),
        }
    }

    /// The same where the answer may be no.
    pub fn ask_for(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>> {
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

    /// Asks, and does not wait.
    pub fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"id": id, "method": method, "params": params});
        self.wire.send(&request.to_string())?;
        Ok(id)
    }

    /// The next message.
    pub fn receive(&mut self) -> Result<Value> {
        match self.wire.next()? {
            WireEvent::Text(text, _) => Ok(serde_json::from_slice(text)?),
            WireEvent::Close(code, reason) => bail!("closed with {code}: {reason}"),
            WireEvent::End => bail!("the connection ended without a word"),
        }
    }
}
