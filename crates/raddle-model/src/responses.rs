//! The OpenAI Responses wire.

mod event;
mod reader;
mod request;

pub use event::{CallForm, Event, ItemKind, Tokens};
pub use request::Request;

use std::collections::VecDeque;

use self::reader::{Heard, Reader};
use crate::http::Answer;
use crate::{CallError, Client, Decoder, Endpoint, Limits};

/// An answer on its way. Dropping it ends the call, at the vendor's end too.
#[derive(Debug)]
pub struct Stream {
    /// Gone when everything has been said.
    answer: Option<Answer>,
    decoder: Decoder,
    reader: Reader,
    /// Read, and not yet handed out.
    ahead: VecDeque<Result<Event, CallError>>,
    is_empty: bool,
}

impl Client {
    /// Asks a model on the OpenAI Responses wire.
    pub async fn responses(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        limits: Limits,
    ) -> Result<Stream, CallError> {
        let body = request.body().map_err(CallError::Malformed)?;
        let answer = self.post(endpoint, "/responses", body, limits).await?;
        Ok(Stream {
            answer: Some(answer),
            decoder: Decoder::new(),
            reader: Reader::default(),
            ahead: VecDeque::new(),
            is_empty: true,
        })
    }
}

impl Stream {
    /// What is said next; nothing after [`Event::Completed`]. Text of one item that came together is
    /// handed out together.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.ahead.pop_front() {
                return event.map(Some);
            }
            let Some(answer) = &mut self.answer else {
                return Ok(None);
            };
            match answer.more().await? {
                Some(bytes) => {
                    self.is_empty = false;
                    self.decoder.push(&bytes);
                    self.read_on();
                }
                None => {
                    let what = match self.is_empty {
                        true => "it was empty",
                        false => "it ended in the middle",
                    };
                    return Err(CallError::BrokeOff(what.to_owned()));
                }
            }
        }
    }

    /// Reads what has come.
    fn read_on(&mut self) {
        loop {
            let heard = match self.decoder.next_event() {
                Ok(None) => return,
                Ok(Some(data)) => self.reader.read(data),
                Err(what) => Err(CallError::Malformed(what.to_owned())),
            };
            let event = match heard {
                Ok(Heard::Nothing) => continue,
                Ok(Heard::Life) => None,
                Ok(Heard::Said(event)) => Some(event),
                Err(error) => {
                    self.ahead.push_back(Err(error));
                    self.answer = None;
                    return;
                }
            };
            if let Some(answer) = &mut self.answer {
                answer.renew_patience();
            }
            let Some(event) = event else {
                continue;
            };
            let is_last = matches!(event, Event::Completed(_));
            self.add(event);
            if is_last {
                if let Some(answer) = self.answer.take() {
                    answer.end();
                }
                return;
            }
        }
    }

    fn add(&mut self, event: Event) {
        let event = match self.ahead.back_mut() {
            Some(Ok(last)) => match last.grow(event) {
                Some(event) => event,
                None => return,
            },
            _ => event,
        };
        if let Some(started) = self.reader.missing_start(&event) {
            self.ahead.push_back(Ok(started));
        }
        self.ahead.push_back(Ok(event));
    }
}
