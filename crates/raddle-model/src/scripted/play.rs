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

use super::fault::{Fault, Said, Stop};
use super::routes::Room;
use super::script::{Speech, Step};
use super::sent::Cut;
use crate::{CallForm, Tokens, Wire};

/// Events that need not wait leave together, up to so many bytes.
const FRAME_BYTES: usize = 16 << 10;

/// How often a connection is kept alive.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// An answer that is played.
pub(super) struct Play {
    pub(super) room: Arc<Room>,
    /// Bytes of the call, from which its cost is guessed.
    pub(super) asked_bytes: usize,
    pub(super) frames: mpsc::Sender<Bytes>,
    pub(super) words: Box<dyn Words>,
    /// Written, and not yet handed over.
    pub(super) buffer: Vec<u8>,
    /// Letters said so far.
    pub(super) said: usize,
}

/// What an answer says of itself.
pub(super) struct Heading {
    /// Its number among all answers, which its ids carry.
    pub(super) number: u64,
    pub(super) model: String,
    /// When it began, in seconds since 1970.
    pub(super) created: u64,
}

impl Heading {
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
pub(super) enum Spoken {
    Text,
    Reasoning,
}

/// How an answer is written on a wire.
pub(super) trait Words: Send {
    fn begin(&mut self, out: &mut Vec<u8>);
    fn start(&mut self, spoken: Spoken, out: &mut Vec<u8>);
    fn piece(&mut self, text: &str, out: &mut Vec<u8>);
    /// All of it has been said.
    fn stop(&mut self, spoken: Spoken, said: &str, out: &mut Vec<u8>);
    fn refusal(&mut self, text: &str, out: &mut Vec<u8>);
    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>);
    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>);
    fn failed(&mut self, said: &Said, message: &str, out: &mut Vec<u8>);
    fn incomplete(&mut self, stop: Stop, out: &mut Vec<u8>);
}

/// The words of a wire.
pub(super) fn words(wire: Wire, head: Heading) -> Box<dyn Words> {
    match wire {
        Wire::Responses => Box::new(responses::Responses::new(head)),
        Wire::Chat => Box::new(chat::Chat::new(head)),
        Wire::Messages => Box::new(messages::Messages::new(head)),
        Wire::Gemini => Box::new(gemini::Gemini::new(head)),
    }
}

impl Play {
    /// Plays the steps to the end, or to a fault.
    pub(super) async fn run(mut self, steps: Vec<Step>) -> Result<(), Cut> {
        self.words.begin(&mut self.buffer);
        let mut tokens = None;
        for step in steps {
            match step {
                Step::Text(speech) => self.say(Spoken::Text, &speech).await?,
                Step::Reasoning(speech) => self.say(Spoken::Reasoning, &speech).await?,
                Step::Refusal(text) => {
                    self.said += text.len();
                    self.words.refusal(&text, &mut self.buffer);
                }
                Step::Call {
                    name,
                    arguments,
                    form,
                } => {
                    self.said += arguments.len();
                    self.words.call(&name, &arguments, form, &mut self.buffer);
                }
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
        self.words.complete(tokens, &mut self.buffer);
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
    async fn say(&mut self, spoken: Spoken, speech: &Speech) -> Result<(), Cut> {
        self.words.start(spoken, &mut self.buffer);
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
            self.words.piece(piece, &mut self.buffer);
            said.push_str(piece);
            if self.buffer.len() >= FRAME_BYTES {
                self.flush().await?;
            }
        }
        if speech.held {
            self.flush().await?;
            self.room.hold().await;
        }
        self.said += said.len();
        self.words.stop(spoken, &said, &mut self.buffer);
        Ok(())
    }

    /// Hands over what is written. When nobody takes it any more, so be it.
    async fn flush(&mut self) -> Result<(), Cut> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let frame = Bytes::from(std::mem::take(&mut self.buffer));
        self.frames.send(frame).await.map_err(|_| Cut)
    }

    async fn fail(&mut self, fault: Fault, retry_after: Option<String>) -> Result<(), Cut> {
        if let Some(said) = fault.said() {
            let message = match retry_after {
                Some(wait) => format!("{} Please try again in {wait}s.", said.message),
                None => said.message.to_owned(),
            };
            self.words.failed(&said, &message, &mut self.buffer);
            return self.flush().await;
        }
        if let Some(stop) = fault.stop() {
            self.words.incomplete(stop, &mut self.buffer);
            return self.flush().await;
        }
        match fault {
            Fault::Garbage => {
                self.buffer
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
