//! The OpenAI Responses wire.

mod reader;
mod request;

pub(crate) use reader::ResponsesReader;
pub use request::ResponsesRequest;

use crate::{AnswerStream, CallError, CallTimeouts, Endpoint, ModelClient, WireFormat};

impl ModelClient {
    /// Sends a request on the OpenAI Responses wire.
    pub async fn responses(
        &self,
        endpoint: &Endpoint,
        request: &ResponsesRequest,
        limits: CallTimeouts,
    ) -> Result<AnswerStream, CallError> {
        let body = request.body();
        let body = body.map_err(|error| CallError::Malformed(error.to_string()))?;
        let answer = self.post(endpoint, "/responses", body, limits).await?;
        Ok(AnswerStream::new(WireFormat::Responses, answer))
    }
}
