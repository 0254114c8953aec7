//! An answer on its way: bytes in, events out.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::http::{Answer, Secrets};
use crate::{CallError, Decoder, Event, Wire};

/// Reads the events of one wire.
pub(crate) trait Reader: fmt::Debug + Send {
    /// Reads an event and adds what it says. Answers whether it shows that the model is at work: vendors
    /// send some only so that no one closes the line.
    fn read(&mut self, data: &str, said: &mut Vec<Event>) -> Result<bool, CallError>;

    /// Nothing more comes. Adds what is left to be said if that is how an answer may end here.
    fn end(&mut self, said: &mut Vec<Event>);
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
pub struct Reading {
    decoder: Decoder,
    reader: Box<dyn Reader>,
    /// How many items, further parts and calls it has begun.
    items: usize,
    /// The further parts.
    parts: HashSet<(Arc<str>, bool, u32)>,
    /// Read, and not yet handed out.
    ahead: VecDeque<Result<Event, CallError>>,
    is_empty: bool,
    is_over: bool,
}

impl Reading {
    /// Nothing has come yet.
    pub fn new(wire: Wire) -> Self {
        Self {
            decoder: Decoder::new(),
            reader: wire.reader(),
            items: 0,
            parts: HashSet::new(),
            ahead: VecDeque::new(),
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
    pub fn next_event(&mut self) -> Option<Result<Event, CallError>> {
        self.ahead.pop_front()
    }

    /// Whether everything has been said, or something went wrong.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn fail(&mut self, error: CallError) {
        self.is_over = true;
        self.ahead.push_back(Err(error));
    }

    fn add(&mut self, event: Event) {
        // Whatever a vendor says after its last word is not heard.
        if self.is_over {
            return;
        }
        self.items += usize::from(match &event {
            Event::Started { .. } | Event::Call { .. } => true,
            Event::Summary { part: 0, .. } | Event::Thought { part: 0, .. } => false,
            Event::Summary { id, part, .. } => self.parts.insert((id.clone(), true, *part)),
            Event::Thought { id, part, .. } => self.parts.insert((id.clone(), false, *part)),
            Event::Text { .. }
            | Event::Message { .. }
            | Event::Reasoning { .. }
            | Event::Completed(_) => false,
        });
        if self.items > ITEMS_MAX {
            return self.fail(too_many_items());
        }
        self.is_over = matches!(event, Event::Completed(_));
        let event = match self.ahead.back_mut() {
            Some(Ok(last)) => last.grow(event),
            _ => Some(event),
        };
        self.ahead.extend(event.map(Ok));
    }
}

/// An answer on its way. Dropping it ends the call, at the vendor's end too.
#[derive(Debug)]
pub struct Stream {
    /// Gone when everything has been said.
    answer: Option<Answer>,
    reading: Reading,
    secrets: Arc<Secrets>,
}

impl Stream {
    pub(crate) fn new(wire: Wire, answer: Answer) -> Self {
        Self {
            secrets: answer.secrets.clone(),
            answer: Some(answer),
            reading: Reading::new(wire),
        }
    }

    /// What is said next; nothing after [`Event::Completed`]. Text of one item that came together is
    /// handed out together.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.reading.next_event() {
                let event = event.map_err(|error| self.secrets.hide_in(error));
                return event.map(Some);
            }
            let Some(answer) = &mut self.answer else {
                return Ok(None);
            };
            match answer.more().await? {
                Some(bytes) => {
                    if self.reading.push(&bytes) {
                        answer.renew_patience();
                    }
                }
                None => self.reading.end(),
            }
            if self.reading.is_over() {
                self.close();
            }
        }
    }

    /// Keeps the connection of an answer that ended well.
    fn close(&mut self) {
        let answer = self.answer.take();
        if let (Some(answer), Some(Ok(_))) = (answer, self.reading.ahead.back()) {
            answer.end();
        }
    }
}
