//! Someone far away who is asked where nobody is attached.

use std::time::Duration;

use serde_json::Value;

use super::BoxFuture;

/// Puts questions to an address.
pub trait Webhook: Send + Sync {
    /// Puts a question, once, and waits for the answer; else says why there is none.
    fn send(&self, put: WebhookRequest) -> BoxFuture<'static, Result<WebhookDecision, String>>;
}

/// A question that is put to an address.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookRequest {
    /// Where to.
    pub url: String,
    /// Names the environment variable that holds what is said as a bearer token.
    pub token_env: Option<String>,
    /// The question.
    pub question: Value,
    /// How long the answer may take.
    pub within: Duration,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookDecision {
    /// Yes, this once.
    Accept,
    /// No.
    Decline,
}
