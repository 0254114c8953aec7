//! A small client, which keeps what it is told as it came.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::wire::MessageWire;

/// What a client opts into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOptIns {
    /// Nothing: a stock client.
    Nothing,
    /// The numbers of records, ids for requests, and what is experimental.
    Numbers,
}

/// A message from the server.
#[derive(Debug, Deserialize)]
pub struct ServerMessage {
    #[serde(default)]
    pub id: Value,
    #[serde(default)]
    pub method: String,
    /// As they were written, so that two can be compared to the letter.
    pub params: Option<Box<RawValue>>,
    pub result: Option<Value>,
    pub error: Option<Value>,
    pub seq: Option<u64>,
}

impl ServerMessage {
    pub fn params(&self) -> Result<Value> {
        let params = self.params.as_ref().map_or("null", |it| it.get());
        Ok(serde_json::from_str(params)?)
    }

    /// Whether it tells what happened, and is neither an answer nor a question.
    pub fn is_told(&self) -> bool {
        !self.method.is_empty() && self.id.is_null()
    }

    /// Whether both say the same. Only when they were sent may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        fn words(it: &ServerMessage) -> Option<&str> {
            it.params.as_ref().map(|it| it.get())
        }
        self.method == other.method && self.seq == other.seq && words(self) == words(other)
    }
}

pub struct RejoinClient {
    wire: Box<dyn MessageWire>,
    next_id: u64,
    /// What came while an answer was waited for.
    early: VecDeque<ServerMessage>,
}

impl RejoinClient {
    pub fn introduced(wire: Box<dyn MessageWire>, wishes: ClientOptIns) -> Result<Self> {
        Self::named(wire, wishes, "rejoin")
    }

    pub fn named(wire: Box<dyn MessageWire>, wishes: ClientOptIns, name: &str) -> Result<Self> {
        let mut client = Self {
            wire,
            next_id: 0,
            early: VecDeque::new(),
        };
        let capabilities = match wishes {
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
        let answer = client.ask("initialize", params)?;
        let has = answer["raddle"]["extensions"].as_array();
        let has = has.is_some_and(|it| it.contains(&json!("raddle/seq")));
        ensure!(has, "the server has no numbers: {answer}");
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

    /// Goes on after a record.
    pub fn rejoin(&mut self, thread: &str, seen: u64) -> Result<()> {
        let params = json!({"threadId": thread, "afterSeq": seen});
        let answer = self.ask("thread/resume", params)?;
        let turns = &answer["thread"]["turns"];
        ensure!(*turns == json!([]), "the answer shows turns: {turns}");
        Ok(())
    }

    /// Asks, and waits for the answer. What comes before it is kept.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.answered(method, &params)?;
        match (answer.result, answer.error) {
            (Some(result), _) => Ok(result),
            (None, error) => bail!("{method} was refused: {}", error.unwrap_or_default()),
        }
    }

    /// Asks for what is refused, and waits for the error.
    pub fn refused(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.answered(method, &params)?;
        let result = answer.result;
        let error = answer.error;
        error.with_context(|| format!("{method} was not refused: {result:?}"))
    }

    /// Asks, and does not wait. Gives the id of the request.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = json!(self.next_id);
        let request = json!({"id": id, "method": method, "params": params});
        self.wire.send(&request.to_string())?;
        Ok(id)
    }

    fn answered(&mut self, method: &str, params: &Value) -> Result<ServerMessage> {
        let id = self.send(method, params)?;
        loop {
            let message = self.receive()?;
            if message.id == id && message.method.is_empty() {
                return Ok(message);
            }
            self.early.push_back(message);
        }
    }

    /// The next message that is told of a thread.
    pub fn told(&mut self, thread: &str) -> Result<ServerMessage> {
        loop {
            let message = self.heard(thread)?;
            if message.is_told() {
                return Ok(message);
            }
        }
    }

    /// The next question about a thread. What is told before it is passed over.
    pub fn asked(&mut self, thread: &str) -> Result<ServerMessage> {
        loop {
            let message = self.heard(thread)?;
            if !message.is_told() {
                return Ok(message);
            }
        }
    }

    /// The next message about a thread.
    pub fn heard(&mut self, thread: &str) -> Result<ServerMessage> {
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

    /// Answers a question.
    pub fn answer(&mut self, question: &ServerMessage, result: &Value) -> Result<()> {
        let answer = json!({"id": question.id, "result": result});
        self.wire.send(&answer.to_string())
    }

    /// Whether nothing was told that nobody has looked at.
    pub fn is_silent(&self) -> bool {
        !self.early.iter().any(ServerMessage::is_told)
    }

    fn receive(&mut self) -> Result<ServerMessage> {
        let bytes = self.wire.receive()?;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("no message: {}", String::from_utf8_lossy(&bytes)))
    }
}
