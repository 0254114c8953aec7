//! The OpenAI Responses wire.

mod reader;
mod request;

pub(crate) use reader::Reader;
pub use request::Request;

use self::reader::Heard;
use crate::{CallError, Client, Endpoint, Event, Limits, Stream, Wire, stream};

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
        Ok(Stream::new(Wire::Responses, answer))
    }
}

impl stream::Reader for Reader {
    fn read(&mut self, data: &str, said: &mut Vec<Event>) -> Result<bool, CallError> {
        match self.read(data)? {
            Heard::Nothing => return Ok(false),
            Heard::Life => {}
            Heard::Said(event) => {
                said.extend(self.missing_start(&event));
                said.push(event);
            }
        }
        Ok(true)
    }

    /// Here an answer says when it is whole.
    fn end(&mut self, _: &mut Vec<Event>) {}
}
