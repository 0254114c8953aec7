//! The OpenAI Responses wire.

mod reader;
mod request;

pub(crate) use reader::ResponsesReader;
pub use request::ResponsesRequest;

use self::reader::ReadOutcome;
use crate::{
    AnswerStream, CallError, CallTimeouts, Endpoint, ModelClient, StreamEvent, WireFormat, stream,
};

impl ModelClient {
    /// Sends a request on the OpenAI Responses wire.
    pub async fn responses(
        &self,
        endpoint: &Endpoint,
        request: &ResponsesRequest,
        limits: CallTimeouts,
    ) -> Result<AnswerStream, CallError> {
        let body = request.body().map_err(CallError::Malformed)?;
        let answer = self.post(endpoint, "/responses", body, limits).await?;
        Ok(AnswerStream::new(WireFormat::Responses, answer))
    }
}

impl stream::WireReader for ResponsesReader {
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        match self.read(data)? {
            ReadOutcome::Nothing => return Ok(false),
            ReadOutcome::Progress => {}
            ReadOutcome::Event(event) => {
                events.extend(self.missing_start(&event));
                events.push(event);
            }
        }
        Ok(true)
    }

    /// On this wire an event completes the answer.
    fn end(&mut self, _: &mut Vec<StreamEvent>) {}
}
