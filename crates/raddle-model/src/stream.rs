//! An answer that is being received: bytes in, events out.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::chat::ChatReader;
use crate::gemini::GeminiReader;
use crate::http::{HttpAnswer, Secrets};
use crate::messages::MessagesReader;
use crate::responses::ResponsesReader;
use crate::wire::{ITEMS_MAX, WireReader, too_many_items};
use crate::{CallError, Decoder, StreamEvent, WireFormat};

/// Reads an answer, however its bytes are split.
#[derive(Debug)]
pub struct AnswerReader {
    decoder: Decoder,
    reader: Box<dyn WireReader>,
    /// Items, further parts and calls that have started.
    items: usize,
    /// The further parts that have started.
    parts: HashSet<(Arc<str>, bool, u32)>,
    /// Events that are parsed and not returned yet.
    queued: VecDeque<Result<StreamEvent, CallError>>,
    is_empty: bool,
    is_over: bool,
}

impl AnswerReader {
    /// Builds a reader for a wire.
    pub fn new(wire: WireFormat) -> Self {
        Self {
            decoder: Decoder::new(),
            reader: reader(wire),
            items: 0,
            parts: HashSet::new(),
            queued: VecDeque::new(),
            is_empty: true,
            is_over: false,
        }
    }

    /// Appends bytes. Returns whether they show that the model is at work.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.is_empty &= bytes.is_empty();
        self.decoder.push(bytes);
        let mut is_active = false;
        let mut events = Vec::new();
        while !self.is_over {
            let result = match self.decoder.next_event() {
                Ok(None) => break,
                Ok(Some(data)) => self.reader.read(data, &mut events),
                Err(error) => Err(CallError::Malformed(error.to_string())),
            };
            events.drain(..).for_each(|event| self.add(event));
            match result {
                Ok(active) => is_active |= active,
                Err(error) => self.fail(error),
            }
        }
        is_active
    }

    /// Ends the stream: an incomplete answer becomes an error.
    pub fn end(&mut self) {
        let mut events = Vec::new();
        if !self.is_over {
            self.reader.end(&mut events);
        }
        events.into_iter().for_each(|event| self.add(event));
        if !self.is_over {
            let message = match self.is_empty {
                true => "it was empty",
                false => "it ended in the middle",
            };
            self.fail(CallError::BrokeOff(message.to_owned()));
        }
    }

    /// Returns the next event that has arrived. Text of one item that arrived together is returned
    /// together.
    pub fn next_event(&mut self) -> Option<Result<StreamEvent, CallError>> {
        self.queued.pop_front()
    }

    /// Returns whether the answer is complete or has failed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn fail(&mut self, error: CallError) {
        self.is_over = true;
        self.queued.push_back(Err(error));
    }

    fn add(&mut self, event: StreamEvent) {
        // Events after the completed one are ignored.
        if self.is_over {
            return;
        }
        self.items += usize::from(match &event {
            StreamEvent::Started { .. } | StreamEvent::Call { .. } => true,
            StreamEvent::Summary { part: 0, .. } | StreamEvent::Thought { part: 0, .. } => false,
            StreamEvent::Summary { id, part, .. } => self.parts.insert((id.clone(), true, *part)),
            StreamEvent::Thought { id, part, .. } => self.parts.insert((id.clone(), false, *part)),
            StreamEvent::Text { .. }
            | StreamEvent::Message { .. }
            | StreamEvent::Reasoning { .. }
            | StreamEvent::Completed(_) => false,
        });
        if self.items > ITEMS_MAX {
            return self.fail(too_many_items());
        }
        self.is_over = matches!(event, StreamEvent::Completed(_));
        let event = match self.queued.back_mut() {
            Some(Ok(last)) => last.grow(event),
            _ => Some(event),
        };
        self.queued.extend(event.map(Ok));
    }
}

/// Returns a reader for the answers of a wire.
fn reader(wire: WireFormat) -> Box<dyn WireReader> {
    match wire {
        WireFormat::Responses => Box::new(ResponsesReader::default()),
        WireFormat::Chat => Box::new(ChatReader::default()),
        WireFormat::Messages => Box::new(MessagesReader::default()),
        WireFormat::Gemini => Box::new(GeminiReader::default()),
    }
}

/// An answer that is being received. Dropping it cancels the call, at the vendor too.
#[derive(Debug)]
pub struct AnswerStream {
    /// `None` when the answer is complete.
    answer: Option<HttpAnswer>,
    reader: AnswerReader,
    secrets: Arc<Secrets>,
}

impl AnswerStream {
    pub(crate) fn new(wire: WireFormat, answer: HttpAnswer) -> Self {
        Self {
            secrets: answer.secrets.clone(),
            answer: Some(answer),
            reader: AnswerReader::new(wire),
        }
    }

    /// Returns the next event; `None` after [`StreamEvent::Completed`]. Text of one item that
    /// arrived together is returned together.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, CallError> {
        loop {
            if let Some(event) = self.reader.next_event() {
                let event = event.map_err(|error| self.secrets.redact_error(error));
                return event.map(Some);
            }
            let Some(answer) = &mut self.answer else {
                return Ok(None);
            };
            match answer.next_chunk().await? {
                Some(bytes) => {
                    if self.reader.push(&bytes) {
                        answer.renew_deadline();
                    }
                }
                None => self.reader.end(),
            }
            if self.reader.is_over() {
                self.close();
            }
        }
    }

    /// Keeps the connection of an answer that completed.
    fn close(&mut self) {
        let answer = self.answer.take();
        if let (Some(answer), Some(Ok(_))) = (answer, self.reader.queued.back()) {
            answer.end();
        }
    }
}
