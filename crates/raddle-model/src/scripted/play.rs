//! Playing the steps of an answer, in the words of the wire it was asked for on.

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

/// Events that need not wait leave together, up to so many bytes.
const FRAME_BYTES: usize = 16 << 10;

/// How often a connection is kept alive.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// An answer that is played.
pub(super) struct AnswerPlayer {
    pub(super) state: Arc<ScriptedState>,
    /// Bytes of the call, from which its cost is guessed.
    pub(super) asked_bytes: usize,
    pub(super) frames: mpsc::Sender<Bytes>,
    pub(super) writer: Box<dyn WireWriter>,
    /// Written, and not yet handed over.
    pub(super) buffer: Vec<u8>,
    /// Letters said so far.
    pub(super) said: usize,
}

/// What an answer says of itself.
pub(super) struct AnswerMeta {
    /// Its number among all answers, which its ids carry.
    pub(super) number: u64,
    pub(super) model: String,
    /// When it began, in seconds since 1970.
    pub(super) created: u64,
}

impl AnswerMeta {
    pub(super) fn new(number: u64, model: String) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            number,
            model,
            created: now.unwrap_or_default().as_secs(),
        }
    }

    fn id(&self, kind: &str, at: usize) -> String {
        format!("{kind}_{}_{at}", self.number)
    }
}

/// What can be said piece by piece.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OutputKind {
    Text,
    Reasoning,
}

/// How an answer is written on a wire.
pub(super) trait WireWriter: Send {
    fn begin(&mut self, out: &mut Vec<u8>);
    fn start(&mut self, spoken: OutputKind, out: &mut Vec<u8>);
    fn piece(&mut self, text: &str, out: &mut Vec<u8>);
    /// All of it has been said.
    fn stop(&mut self, spoken: OutputKind, said: &str, out: &mut Vec<u8>);
    fn refusal(&mut self, text: &str, out: &mut Vec<u8>);
    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>);
    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>);
    fn failed(&mut self, said: &FaultReply, message: &str, out: &mut Vec<u8>);
    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>);
}

/// The words of a wire.
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
                ScriptStep::Text(speech) => self.say(OutputKind::Text, &speech).await?,
                ScriptStep::Reasoning(speech) => self.say(OutputKind::Reasoning, &speech).await?,
                ScriptStep::Refusal(text) => {
                    self.said += text.len();
                    self.writer.refusal(&text, &mut self.buffer);
                }
                ScriptStep::Call {
                    name,
                    arguments,
                    form,
                } => {
                    self.said += arguments.len();
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
        let tokens = tokens.unwrap_or_else(|| self.guessed());
        self.writer.complete(tokens, &mut self.buffer);
        self.flush().await
    }

    /// A token has about four bytes.
    fn guessed(&self) -> Tokens {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        Tokens {
            input: tokens(self.asked_bytes),
            output: tokens(self.said),
            ..Tokens::default()
        }
    }

    /// Says something piece by piece.
    async fn say(&mut self, spoken: OutputKind, speech: &TextStep) -> Result<(), Disconnect> {
        self.writer.start(spoken, &mut self.buffer);
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
            self.writer.piece(piece, &mut self.buffer);
            said.push_str(piece);
            if self.buffer.len() >= FRAME_BYTES {
                self.flush().await?;
            }
        }
        if speech.held {
            self.flush().await?;
            self.state.hold().await;
        }
        self.said += said.len();
        self.writer.stop(spoken, &said, &mut self.buffer);
        Ok(())
    }

    /// Hands over what is written. When nobody takes it any more, so be it.
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
        if let Some(said) = fault.reply() {
            let message = match retry_after {
                Some(wait) => format!("{} Please try again in {wait}s.", said.message),
                None => said.message.to_owned(),
            };
            self.writer.failed(&said, &message, &mut self.buffer);
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
            if let Err(cut) = self.flush().await {
                break Err(cut);
            }
            sleep(KEEP_ALIVE).await;
        };
        never.map(|_| ())
    }
}

/// An event without a name.
fn data(event: &Value, out: &mut Vec<u8>) {
    let _ = write!(out, "data: {event}\n\n");
}

/// What a call is made with, on wires that have only JSON: a text is the only argument.
fn in_json(arguments: &str, form: CallForm) -> Cow<'_, str> {
    match form {
        CallForm::Function => Cow::Borrowed(arguments),
        CallForm::Freeform => Cow::Owned(json!({ "input": arguments }).to_string()),
    }
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
