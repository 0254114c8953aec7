//! Playing the steps of an answer as events of the wire.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::fault::Fault;
use super::routes::{Cut, Room};
use super::script::{Speech, Step};
use crate::{CallForm, Tokens};

/// Events that need not wait leave together, up to so many bytes.
const FRAME_BYTES: usize = 16 << 10;

/// How often a connection is kept alive.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// An answer that is played.
pub(super) struct Play {
    pub(super) room: Arc<Room>,
    /// Its number among all answers, which its ids carry.
    pub(super) number: u64,
    pub(super) model: String,
    /// Bytes of the call, from which its cost is guessed.
    pub(super) asked_bytes: usize,
    pub(super) frames: mpsc::Sender<Bytes>,
    pub(super) events: Events,
}

/// Events, written one after the other.
#[derive(Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    sequence: u64,
    /// The items that are whole.
    output: Vec<Value>,
    /// Letters said so far.
    said: usize,
}

impl Events {
    fn event(&mut self, kind: &str, members: Value) {
        let mut event = json!({ "type": kind, "sequence_number": self.sequence });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        self.sequence += 1;
        let _ = write!(self.buffer, "event: {kind}\ndata: {event}\n\n");
    }

    /// The same for the piece of a text, of which there can be very many.
    fn delta(&mut self, kind: &str, place: &str, text: &str) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.said += text.len();
        let _ = write!(
            self.buffer,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence},{place},\"delta\":"
        );
        // A text in memory can always be written.
        let _ = serde_json::to_writer(&mut self.buffer, text);
        self.buffer.extend_from_slice(b"}\n\n");
    }

    fn added(&mut self, item: &Value) {
        let members = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.added", members);
    }

    fn done(&mut self, item: Value) {
        let members = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.done", members);
        self.output.push(item);
    }
}

/// What grows when something is said.
struct Growing {
    delta: &'static str,
    /// The members that say where it grows.
    place: String,
}

impl Play {
    /// Plays the steps to the end, or to a fault.
    pub(super) async fn run(mut self, steps: Vec<Step>) -> Result<(), Cut> {
        let response = self.response("in_progress");
        for kind in ["response.created", "response.in_progress"] {
            self.events.event(kind, json!({ "response": response }));
        }
        let mut tokens = None;
        for step in steps {
            match step {
                Step::Text(speech) => self.message(&speech).await?,
                Step::Reasoning(speech) => self.reasoning(&speech).await?,
                Step::Refusal(text) => self.refusal(&text),
                Step::Call {
                    name,
                    arguments,
                    form,
                } => self.call(&name, &arguments, form),
                Step::Silence(time) => {
                    self.flush().await?;
                    sleep(time).await;
                }
                Step::Held => {
                    self.flush().await?;
                    self.room.hold().await;
                }
                Step::Usage(it) => tokens = Some(it),
                Step::Fault { fault, retry_after } => {
                    self.flush().await?;
                    return self.fail(fault, retry_after).await;
                }
            }
        }
        let tokens = tokens.unwrap_or_else(|| self.guessed());
        let mut response = self.response("completed");
        response["output"] = Value::Array(std::mem::take(&mut self.events.output));
        response["usage"] = usage(tokens);
        self.events
            .event("response.completed", json!({ "response": response }));
        self.flush().await
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_{}", self.number),
            "object": "response",
            "status": status,
            "model": self.model,
            "output": [],
        })
    }

    /// A token has about four bytes.
    fn guessed(&self) -> Tokens {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        Tokens {
            input: tokens(self.asked_bytes),
            output: tokens(self.events.said),
            ..Tokens::default()
        }
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.number, self.events.output.len())
    }

    async fn message(&mut self, speech: &Speech) -> Result<(), Cut> {
        let id = self.id("msg");
        let at = self.events.output.len();
        let mut item = json!({ "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [] });
        self.events.added(&item);
        let mut part = json!({ "type": "output_text", "text": "", "annotations": [] });
        let place = json!({ "item_id": id, "output_index": at, "content_index": 0 });
        self.events
            .event("response.content_part.added", with(&place, "part", &part));
        let said = self
            .say(
                speech,
                &Growing {
                    delta: "response.output_text.delta",
                    place: members(&place),
                },
            )
            .await?;
        part["text"] = said.into();
        self.events.event(
            "response.output_text.done",
            with(&place, "text", &part["text"]),
        );
        self.events
            .event("response.content_part.done", with(&place, "part", &part));
        item["status"] = "completed".into();
        item["content"] = json!([part]);
        self.events.done(item);
        Ok(())
    }

    async fn reasoning(&mut self, speech: &Speech) -> Result<(), Cut> {
        let id = self.id("rs");
        let at = self.events.output.len();
        let mut item = json!({ "id": id, "type": "reasoning", "summary": [] });
        self.events.added(&item);
        let mut part = json!({ "type": "summary_text", "text": "" });
        let place = json!({ "item_id": id, "output_index": at, "summary_index": 0 });
        self.events.event(
            "response.reasoning_summary_part.added",
            with(&place, "part", &part),
        );
        let said = self
            .say(
                speech,
                &Growing {
                    delta: "response.reasoning_summary_text.delta",
                    place: members(&place),
                },
            )
            .await?;
        part["text"] = said.into();
        self.events.event(
            "response.reasoning_summary_text.done",
            with(&place, "text", &part["text"]),
        );
        self.events.event(
            "response.reasoning_summary_part.done",
            with(&place, "part", &part),
        );
        item["summary"] = json!([part]);
        item["encrypted_content"] = format!("sealed {id}").into();
        self.events.done(item);
        Ok(())
    }

    fn refusal(&mut self, text: &str) {
        let id = self.id("msg");
        let at = self.events.output.len();
        let mut item = json!({ "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [] });
        self.events.added(&item);
        let place = json!({ "item_id": id, "output_index": at, "content_index": 0 });
        self.events
            .delta("response.refusal.delta", &members(&place), text);
        item["status"] = "completed".into();
        item["content"] = json!([{ "type": "refusal", "refusal": text }]);
        self.events.done(item);
    }

    fn call(&mut self, name: &str, arguments: &str, form: CallForm) {
        let at = self.events.output.len();
        let call_id = self.id("call");
        let (kind, prefix, member, delta) = match form {
            CallForm::Function => (
                "function_call",
                "fc",
                "arguments",
                "response.function_call_arguments",
            ),
            CallForm::Freeform => (
                "custom_tool_call",
                "ctc",
                "input",
                "response.custom_tool_call_input",
            ),
        };
        let id = self.id(prefix);
        let mut item = json!({ "id": id, "type": kind, "status": "in_progress", "call_id": call_id, "name": name, member: "" });
        self.events.added(&item);
        let place = json!({ "item_id": id, "output_index": at });
        for piece in pieces(arguments, 16) {
            self.events
                .delta(&format!("{delta}.delta"), &members(&place), piece);
        }
        item[member] = arguments.into();
        self.events.event(
            &format!("{delta}.done"),
            with(&place, member, &item[member]),
        );
        item["status"] = "completed".into();
        self.events.done(item);
    }

    /// Says something piece by piece, and answers with what was said.
    async fn say(&mut self, speech: &Speech, growing: &Growing) -> Result<String, Cut> {
        let mut said = String::with_capacity(speech.text.len());
        let mut due = Instant::now();
        for piece in pieces(&speech.text, speech.size) {
            if due > Instant::now() {
                self.flush().await?;
                sleep_until(due).await;
            }
            due += speech.gap;
            let stamped = speech.stamped.then(|| stamped(piece));
            let piece = stamped.as_deref().unwrap_or(piece);
            self.events.delta(growing.delta, &growing.place, piece);
            said.push_str(piece);
            if self.events.buffer.len() >= FRAME_BYTES {
                self.flush().await?;
            }
        }
        Ok(said)
    }

    /// Hands over what is written. When nobody takes it any more, so be it.
    async fn flush(&mut self) -> Result<(), Cut> {
        if self.events.buffer.is_empty() {
            return Ok(());
        }
        let frame = Bytes::from(std::mem::take(&mut self.events.buffer));
        self.frames.send(frame).await.map_err(|_| Cut)
    }

    async fn fail(&mut self, fault: Fault, retry_after: Option<String>) -> Result<(), Cut> {
        if let Some(said) = fault.said() {
            let mut error = said.error();
            if let Some(wait) = retry_after {
                error["message"] = format!("{} Please try again in {wait}s.", said.message).into();
            }
            let mut response = self.response("failed");
            response["error"] = error;
            self.events
                .event("response.failed", json!({ "response": response }));
            return self.flush().await;
        }
        if let Some(reason) = fault.incomplete_reason() {
            let mut response = self.response("incomplete");
            response["incomplete_details"] = json!({ "reason": reason });
            self.events
                .event("response.incomplete", json!({ "response": response }));
            return self.flush().await;
        }
        match fault {
            Fault::Garbage => {
                self.events
                    .buffer
                    .extend_from_slice(b"data: {\"type\": \xff\xfe}\n\n");
                self.flush().await
            }
            Fault::KeepAlive => self.keep_alive().await,
            Fault::Cut | Fault::Reset => Err(Cut),
            _ => std::future::pending().await,
        }
    }

    async fn keep_alive(&mut self) -> Result<(), Cut> {
        let never: Result<Infallible, Cut> = loop {
            self.events.buffer.extend_from_slice(b": keep-alive\n\n");
            if let Err(cut) = self.flush().await {
                break Err(cut);
            }
            sleep(KEEP_ALIVE).await;
        };
        never.map(|_| ())
    }
}

/// A place with one more member.
fn with(place: &Value, name: &str, value: &Value) -> Value {
    let mut members = place.clone();
    members[name] = value.clone();
    members
}

/// The members of an object without its braces.
fn members(object: &Value) -> String {
    let text = object.to_string();
    text[1..text.len() - 1].to_owned()
}

/// A text in pieces of so many letters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// A piece that begins with the time in microseconds since 1970, as long as it was if that is possible.
fn stamped(piece: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let stamp = format!("{};", now.unwrap_or_default().as_micros());
    let rest: String = piece.chars().skip(stamp.len()).collect();
    stamp + &rest
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": { "cached_tokens": tokens.cached },
        "output_tokens": tokens.output,
        "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
        "total_tokens": tokens.input + tokens.output,
    })
}
