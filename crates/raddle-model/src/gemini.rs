//! The wire of Gemini: `streamGenerateContent`.

mod reader;
mod request;

pub(crate) use reader::GeminiReader;

use self::request::body;
use crate::http::escaped;
use crate::{AnswerStream, CallError, CallTimeouts, Endpoint, ModelClient, ModelQuery, WireFormat};

impl ModelClient {
    /// Sends a question on the wire of Gemini.
    pub async fn gemini(
        &self,
        endpoint: &Endpoint,
        question: &ModelQuery<'_>,
        limits: CallTimeouts,
    ) -> Result<AnswerStream, CallError> {
        let body = body(question).map_err(|error| CallError::Malformed(error.to_string()))?;
        let model = question.model.trim_start_matches("models/");
        let path = format!("/models/{}:streamGenerateContent", escaped(model));
        let endpoint = endpoint.clone().with_query("alt", "sse");
        let answer = self.post(&endpoint, &path, body, limits);
        Ok(AnswerStream::new(WireFormat::Gemini, answer.await?))
    }
}
