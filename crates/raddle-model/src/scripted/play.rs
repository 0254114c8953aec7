//! Plays the steps of an answer, in the format of the request's wire.

mod chat;
mod gemini;
mod messages;
mod responses;

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::answer_body::Disconnect;
use super::fault::{FaultReply, ScriptedFault, StopReason};
use super::routes::ScriptedState;
use super::script::{ScriptStep, TextStep};
use crate::{CallForm, Tokens, WireFormat};

/// Maximum number of bytes of events that are sent in one frame.
const FRAME_BYTES: usize = 16 << 10;

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(250);

/// An answer that is being played.
pub(super) struct AnswerPlayer {
    pub(super) state: Arc<ScriptedState>,
    /// Bytes of the call, from which its usage is estimated.
    pub(super) call_bytes: usize,
    pub(super) frames: mpsc::Sender<Bytes>,
    pub(super) writer: Box<dyn WireWriter>,
    /// Encoded events that are not sent yet.
    pub(super) buffer: Vec<u8>,
    /// Bytes of output so far.
    pub(super) output_bytes: usize,
}

/// Metadata of an answer.
pub(super) struct AnswerMeta {
    /// Its number among all answers, which is part of its ids.
    pub(super) number: u64,
    pub(super) model: String,
    /// Start time, in seconds since 1970.
    pub(super) created: u64,
}

impl AnswerMeta {
    pub(super) fn new(number: u64, model: String) -> Self {
        Self {
            number,
            model,
            created: since_1970().as_secs(),
        }
    }

    fn id(&self, kind: &str, at: usize) -> String {
        format!("{kind}_{}_{at}", self.number)
    }
}

/// Kind of an output that is streamed in pieces.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OutputKind {
    Text,
    Reasoning,
}

/// Encodes an answer for a wire.
pub(super) trait WireWriter: Send {
    fn begin(&mut self, out: &mut Vec<u8>);
    fn start(&mut self, kind: OutputKind, out: &mut Vec<u8>);
    fn piece(&mut self, text: &str, out: &mut Vec<u8>);
    /// Ends an output, given its whole text.
    fn stop(&mut self, kind: OutputKind, text: &str, out: &mut Vec<u8>);
    fn refusal(&mut self, text: &str, out: &mut Vec<u8>);
    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>);
    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>);
    fn failed(&mut self, reply: &FaultReply, message: &str, out: &mut Vec<u8>);
    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>);
}

/// Returns the writer of a wire.
pub(super) fn writer_for(wire: WireFormat, head: AnswerMeta) -> Box<dyn WireWriter> {
    match wire {
        WireFormat::Responses => Box::new(responses::ResponsesWriter::new(head)),
        WireFormat::Chat => Box::new(chat::ChatWriter::new(head)),
        WireFormat::Messages => Box::new(messages::MessagesWriter::new(head)),
        WireFormat::Gemini => Box::new(gemini::GeminiWriter::new(head)),
    }
}

impl AnswerPlayer {
    /// Plays the steps to the end, or to a fault.
    pub(super) async fn run(mut self, steps: Vec<ScriptStep>) -> Result<(), Disconnect> {
        self.writer.begin(&mut self.buffer);
        let mut tokens = None;
        for step in steps {
            match step {
                ScriptStep::Text(text_step) => {
                    self.stream_text(OutputKind::Text, &text_step).await?
                }
                ScriptStep::Reasoning(text_step) => {
                    self.stream_text(OutputKind::Reasoning, &text_step).await?
                }
                ScriptStep::Refusal(text) => {
                    self.output_bytes += text.len();
                    self.writer.refusal(&text, &mut self.buffer);
                }
                ScriptStep::Call {
                    name,
                    arguments,
                    form,
                } => {
                    self.output_bytes += arguments.len();
                    self.writer.call(&name, &arguments, form, &mut self.buffer);
                }
                ScriptStep::Silence(time) => {
                    self.flush().await?;
                    sleep(time).await;
                }
                ScriptStep::Hold => {
                    self.flush().await?;
                    self.state.hold().await;
                }
                ScriptStep::Usage(it) => tokens = Some(it),
                ScriptStep::Fault { fault, retry_after } => {
                    self.flush().await?;
                    return self.fail(fault, retry_after).await;
                }
            }
        }
        let tokens = tokens.unwrap_or_else(|| self.estimated_usage());
        self.writer.complete(tokens, &mut self.buffer);
        self.flush().await
    }

    /// Estimates the usage: a token has about four bytes.
    fn estimated_usage(&self) -> Tokens {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        Tokens {
            input: tokens(self.call_bytes),
            output: tokens(self.output_bytes),
            ..Tokens::default()
        }
    }

    /// Streams an output in pieces.
    async fn stream_text(&mut self, kind: OutputKind, step: &TextStep) -> Result<(), Disconnect> {
        self.writer.start(kind, &mut self.buffer);
        let mut text = String::with_capacity(step.text.len());
        let mut due = Instant::now();
        for piece in pieces(&step.text, step.size) {
            if due > Instant::now() {
                self.flush().await?;
                sleep_until(due).await;
            }
            due += step.gap;
            let stamped = step.stamped.then(|| stamped(piece));
            let piece = stamped.as_deref().unwrap_or(piece);
            self.writer.piece(piece, &mut self.buffer);
            text.push_str(piece);
            if self.buffer.len() >= FRAME_BYTES {
                self.flush().await?;
            }
        }
        if step.held {
            self.flush().await?;
            self.state.hold().await;
        }
        self.output_bytes += text.len();
        self.writer.stop(kind, &text, &mut self.buffer);
        Ok(())
    }

    /// Sends the buffered events; fails when the client has disconnected.
    async fn flush(&mut self) -> Result<(), Disconnect> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let frame = Bytes::from(std::mem::take(&mut self.buffer));
        self.frames.send(frame).await.map_err(|_| Disconnect)
    }

    async fn fail(
        &mut self,
        fault: ScriptedFault,
        retry_after: Option<String>,
    ) -> Result<(), Disconnect> {
        if let Some(reply) = fault.reply() {
            let message = match retry_after {
                Some(wait) => format!("{} Please try again in {wait}s.", reply.message),
                None => reply.message.to_owned(),
            };
            self.writer.failed(&reply, &message, &mut self.buffer);
            return self.flush().await;
        }
        if let Some(stop) = fault.stop() {
            self.writer.incomplete(stop, &mut self.buffer);
            return self.flush().await;
        }
        match fault {
            ScriptedFault::Garbage => {
                self.buffer
                    .extend_from_slice(b"data: {\"type\": \xff\xfe}\n\n");
                self.flush().await
            }
            ScriptedFault::KeepAlive => self.keep_alive().await,
            ScriptedFault::Cut | ScriptedFault::Reset => Err(Disconnect),
            _ => std::future::pending().await,
        }
    }

    async fn keep_alive(&mut self) -> Result<(), Disconnect> {
        let never: Result<Infallible, Disconnect> = loop {
            self.buffer.extend_from_slice(b": keep-alive\n\n");
            if let Err(error) = self.flush().await {
                break Err(error);
            }
            sleep(KEEP_ALIVE_INTERVAL).await;
        };
        never.map(|_| ())
    }
}

/// Writes an event without a name.
fn data(event: &Value, out: &mut Vec<u8>) {
    let _ = write!(out, "data: {event}\n\n");
}

/// Returns the arguments of a call for wires that accept only JSON: a text becomes the only
/// argument.
fn in_json(arguments: &str, form: CallForm) -> Cow<'_, str> {
    match form {
        CallForm::Function => Cow::Borrowed(arguments),
        CallForm::Freeform => Cow::Owned(json!({ "input": arguments }).to_string()),
    }
}

/// Splits a text into pieces of so many characters.
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

/// Replaces the start of a piece by the time in microseconds since 1970, and keeps its length if
/// possible.
fn stamped(piece: &str) -> String {
    let stamp = format!("{};", since_1970().as_micros());
    let rest: String = piece.chars().skip(stamp.len()).collect();
    stamp + &rest
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}
