//! An answer on its way: bytes in, events out.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::http::{HttpAnswer, Secrets};
use crate::{CallError, Decoder, StreamEvent, WireFormat};

/// Reads the events of one wire.
pub(crate) trait WireReader: fmt::Debug + Send {
    /// Reads an event and adds what it says. Answers whether it shows that the model is at work: vendors
    /// send some only so that no one closes the line.
    fn read(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Result<bool, CallError>;

    /// Nothing more comes. Adds what is left to be said if that is how an answer may end here.
    fn end(&mut self, said: &mut Vec<StreamEvent>);
}

/// How many items, further parts of items and calls one answer may begin. Whoever keeps them looks through all that are open for each, so
/// what an answer costs must not grow with all that fits into its bytes.
pub const ITEMS_MAX: usize = 1_024;

/// Why an answer with more is not read.
pub(crate) fn too_many_items() -> CallError {
    CallError::Malformed(format!("it has more than {ITEMS_MAX} items"))
}

/// Reads an answer, however its bytes are cut.
#[derive(Debug)]
pub struct AnswerReader {
    decoder: Decoder,
    reader: Box<dyn WireReader>,
    /// How many items, further parts and calls it has begun.
    items: usize,
    /// The further parts.
    parts: HashSet<(Arc<str>, bool, u32)>,
    /// Read, and not yet handed out.
    queued: VecDeque<Result<StreamEvent, CallError>>,
    is_empty: bool,
    is_over: bool,
}

impl AnswerReader {
    /// Nothing has come yet.
    pub fn new(wire: WireFormat) -> Self {
        Self {
            decoder: Decoder::new(),
            reader: wire.reader(),
            items: 0,
            parts: HashSet::new(),
            queued: VecDeque::new(),
            is_empty: true,
            is_over: false,
        }
    }

    /// Takes more bytes. Answers whether they show that the model is at work.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.is_empty &= bytes.is_empty();
        self.decoder.push(bytes);
        let mut shows_life = false;
        let mut said = Vec::new();
        while !self.is_over {
            let read = match self.decoder.next_event() {
                Ok(None) => break,
                Ok(Some(data)) => self.reader.read(data, &mut said),
                Err(what) => Err(CallError::Malformed(what.to_owned())),
            };
            said.drain(..).for_each(|event| self.add(event));
            match read {
                Ok(life) => shows_life |= life,
                Err(error) => self.fail(error),
            }
        }
        shows_life
    }

    /// Nothing more comes: an answer that is not whole broke off.
    pub fn end(&mut self) {
        let mut said = Vec::new();
        if !self.is_over {
            self.reader.end(&mut said);
        }
        said.into_iter().for_each(|event| self.add(event));
        if !self.is_over {
            let what = match self.is_empty {
                true => "it was empty",
                false => "it ended in the middle",
            };
            self.fail(CallError::BrokeOff(what.to_owned()));
        }
    }

    /// What is said next, of what has come. Text of one item that came together is handed out together.
    pub fn next_event(&mut self) -> Option<Result<StreamEvent, CallError>> {
        self.queued.pop_front()
    }

    /// Whether everything has been said, or something went wrong.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn fail(&mut self, error: CallError) {
        self.is_over = true;
        self.queued.push_back(Err(error));
    }

    fn add(&mut self, event: StreamEvent) {
        // Whatever a vendor says after its last word is not heard.
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

/// An answer on its way. Dropping it ends the call, at the vendor's end too.
#[derive(Debug)]
pub struct AnswerStream {
    /// Gone when everything has been said.
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

    /// What is said next; nothing after [`Event::Completed`]. Text of one item that came together is
    /// handed out together.
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

    /// Keeps the connection of an answer that ended well.
    fn close(&mut self) {
        let answer = self.answer.take();
        if let (Some(answer), Some(Ok(_))) = (answer, self.reader.queued.back()) {
            answer.end();
        }
    }
}
