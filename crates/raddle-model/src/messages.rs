//! The Anthropic Messages wire.

mod reader;
mod request;

pub(crate) use reader::MessagesReader;

use self::request::body;
use crate::{AnswerStream, CallError, CallTimeouts, Endpoint, ModelClient, ModelQuery, WireFormat};

impl ModelClient {
    /// Sends a question on the Anthropic Messages wire.
    pub async fn messages(
        &self,
        endpoint: &Endpoint,
        question: &ModelQuery<'_>,
        limits: CallTimeouts,
    ) -> Result<AnswerStream, CallError> {
        let body = body(question).map_err(|error| CallError::Malformed(error.to_string()))?;
        let endpoint = endpoint.with_default_header("anthropic-version", "2023-06-01");
        let answer = self.post(&endpoint, "/messages", body, limits);
        Ok(AnswerStream::new(WireFormat::Messages, answer.await?))
    }
}
