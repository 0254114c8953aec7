//! Webhook that receives requests while no client is attached.

use std::time::Duration;

use serde_json::Value;

use super::BoxFuture;

/// Sends requests to a webhook.
pub trait Webhook: Send + Sync {
    /// Sends a request once and waits for the decision, or returns the reason why there is none.
    fn send(
        &self,
        request: WebhookRequest,
    ) -> BoxFuture<'static, Result<WebhookDecision, WebhookError>>;
}

/// A request to a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookRequest {
    /// URL of the webhook.
    pub url: String,
    /// Name of the environment variable that holds the bearer token.
    pub token_env: Option<String>,
    /// The question, as JSON.
    pub question: Value,
    /// Timeout for the response.
    pub timeout: Duration,
}

/// Reason why a webhook made no decision, for the log. It has no source: the path of the URL is
/// often a secret, and the text has it redacted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WebhookError(pub String);

/// Decision of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookDecision {
    /// Approves this act, once.
    Accept,
    /// Declines the act, which does not happen.
    Decline,
}
