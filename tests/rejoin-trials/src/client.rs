//! A small client that stores messages as received.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use support::{Fold, ServerMessage};

use crate::wire::MessageWire;

/// Capabilities that a client opts into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOptIns {
    /// None: a stock client.
    Nothing,
    /// Record numbers, idempotency keys, and the experimental API.
    Numbers,
}

pub struct RejoinClient {
    wire: Box<dyn MessageWire>,
    next_id: u64,
    /// Messages received while waiting for a response.
    early: VecDeque<ServerMessage>,
}

impl RejoinClient {
    pub fn initialized(wire: Box<dyn MessageWire>, opt_ins: ClientOptIns) -> Result<Self> {
        Self::with_name(wire, opt_ins, "rejoin")
    }

    pub fn with_name(
        wire: Box<dyn MessageWire>,
        opt_ins: ClientOptIns,
        name: &str,
    ) -> Result<Self> {
        let mut client = Self {
            wire,
            next_id: 0,
            early: VecDeque::new(),
        };
        let capabilities = match opt_ins {
            ClientOptIns::Nothing => json!({}),
            ClientOptIns::Numbers => {
                let extensions = json!({"raddle/seq": {}, "raddle/idempotency": {}});
                json!({"experimentalApi": true, "extensions": extensions})
            }
        };
        let params = json!({
            "clientInfo": {"name": name, "version": "1"},
            "capabilities": capabilities,
        });
        let answer = client.request("initialize", params)?;
        let server_extensions = answer["raddle"]["extensions"].as_array();
        let has_numbers = server_extensions.is_some_and(|it| it.contains(&json!("raddle/seq")));
        ensure!(has_numbers, "the server has no numbers: {answer}");
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

    /// Resumes a thread after a record.
    pub fn rejoin(&mut self, thread: &str, after_seq: u64) -> Result<()> {
        let params = json!({"threadId": thread, "afterSeq": after_seq});
        let answer = self.request("thread/resume", params)?;
        let turns = &answer["thread"]["turns"];
        ensure!(*turns == json!([]), "the answer shows turns: {turns}");
        Ok(())
    }

    /// Sends a request and waits for its response. Stores earlier messages.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.round_trip(method, &params)?;
        match (answer.result, answer.error) {
            (Some(result), _) => Ok(result),
            (None, error) => bail!("{method} was refused: {}", error.unwrap_or_default()),
        }
    }

    /// Sends a request that must be rejected. Returns the error.
    pub fn request_error(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.round_trip(method, &params)?;
        let result = answer.result;
        let error = answer.error;
        error.with_context(|| format!("{method} was not refused: {result:?}"))
    }

    /// Sends a request without waiting. Returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = json!(self.next_id);
        let request = json!({"id": id, "method": method, "params": params});
        self.wire.send(&request.to_string())?;
        Ok(id)
    }

    fn round_trip(&mut self, method: &str, params: &Value) -> Result<ServerMessage> {
        let id = self.send(method, params)?;
        loop {
            let message = self.receive()?;
            if message.id == id && message.method.is_empty() {
                return Ok(message);
            }
            self.early.push_back(message);
        }
    }

    /// Returns the next notification of a thread.
    pub fn next_notification(&mut self, thread: &str) -> Result<ServerMessage> {
        loop {
            let message = self.next_message(thread)?;
            if message.is_notification() {
                return Ok(message);
            }
        }
    }

    /// Returns the next server request of a thread. Skips earlier notifications.
    pub fn next_request(&mut self, thread: &str) -> Result<ServerMessage> {
        loop {
            let message = self.next_message(thread)?;
            if !message.is_notification() {
                return Ok(message);
            }
        }
    }

    /// Returns the next message of a thread.
    pub fn next_message(&mut self, thread: &str) -> Result<ServerMessage> {
        loop {
            let message = match self.early.pop_front() {
                Some(message) => message,
                None => self.receive()?,
            };
            let is_of = |params: &RawValue| params.get().contains(thread);
            if message.params.as_deref().is_some_and(is_of) {
                return Ok(message);
            }
        }
    }

    /// Applies notifications of a thread until no turn runs.
    pub fn fold_until_over(&mut self, fold: &mut Fold, thread: &str) -> Result<()> {
        while !fold.is_over() {
            fold.apply(&self.next_notification(thread)?)?;
        }
        Ok(())
    }

    /// Checks that a state equals the server's snapshot of the thread.
    pub fn ensure_equal(&mut self, fold: &Fold, thread: &str) -> Result<()> {
        let params = json!({"threadId": thread, "includeTurns": true});
        let response = self.request("thread/read", params)?;
        let snapshot = Fold::of_turns(&response["thread"]["turns"])?;
        fold.ensure_equal(&snapshot)
    }

    /// Answers a server request.
    pub fn answer(&mut self, question: &ServerMessage, result: &Value) -> Result<()> {
        let answer = json!({"id": question.id, "result": result});
        self.wire.send(&answer.to_string())
    }

    /// Whether there is no unread notification.
    pub fn is_silent(&self) -> bool {
        !self.early.iter().any(ServerMessage::is_notification)
    }

    fn receive(&mut self) -> Result<ServerMessage> {
        let bytes = self.wire.receive()?;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("no message: {}", String::from_utf8_lossy(&bytes)))
    }
}
