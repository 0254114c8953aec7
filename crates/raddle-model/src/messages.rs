//! The Anthropic Messages wire.

mod reader;
mod request;

pub(crate) use reader::Reader;

use self::request::body;
use crate::{CallError, Client, Endpoint, Limits, Question, Stream, Wire};

impl Client {
    /// Asks a model on the Anthropic Messages wire.
    pub async fn messages(
        &self,
        endpoint: &Endpoint,
        question: &Question<'_>,
        limits: Limits,
    ) -> Result<Stream, CallError> {
        let body = body(question).map_err(|error| CallError::Malformed(error.to_string()))?;
        let endpoint = endpoint.with_usual("anthropic-version", "2023-06-01");
        let answer = self.post(&endpoint, "/messages", body, limits);
        Ok(Stream::new(Wire::Messages, answer.await?))
    }
}
