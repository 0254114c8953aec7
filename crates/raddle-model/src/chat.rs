//! The OpenAI Chat Completions wire, which OpenAI, brokers and most engines serve.

mod reader;
mod request;

pub(crate) use reader::ChatReader;

use self::request::body;
use crate::{AnswerStream, CallError, CallTimeouts, Endpoint, ModelClient, ModelQuery, WireFormat};

impl ModelClient {
    /// Sends a question on the OpenAI Chat Completions wire.
    pub async fn chat(
        &self,
        endpoint: &Endpoint,
        question: &ModelQuery<'_>,
        limits: CallTimeouts,
    ) -> Result<AnswerStream, CallError> {
        let body = body(question).map_err(|error| CallError::Malformed(error.to_string()))?;
        let answer = self.post(endpoint, "/chat/completions", body, limits);
        Ok(AnswerStream::new(WireFormat::Chat, answer.await?))
    }
}
