//! Posts approval requests to a webhook when no client is there to answer.

use std::time::Duration;

use raddle_core::ports::{BoxFuture, Webhook, WebhookDecision, WebhookError, WebhookRequest};
use raddle_model::{CallTimeouts, Endpoint, ModelClient};
use serde::Deserialize;

/// The timeout to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// Posts requests over HTTP.
#[derive(Debug, Default)]
pub(crate) struct HttpWebhook(ModelClient);

#[derive(Deserialize)]
struct WebhookAnswer {
    decision: WireDecision,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WireDecision {
    Accept,
    Decline,
}

impl Webhook for HttpWebhook {
    fn send(
        &self,
        request: WebhookRequest,
    ) -> BoxFuture<'static, Result<WebhookDecision, WebhookError>> {
        let client = self.0.clone();
        Box::pin(async move {
            let limits = CallTimeouts {
                connect: CONNECT.min(request.timeout),
                idle: request.timeout,
                total: request.timeout,
            };
            let endpoint =
                endpoint(&request).map_err(|error| without_path(&error, &request.url))?;
            let body = request.question.to_string().into_bytes();
            let response = client.exchange(&endpoint, body, limits).await;
            let response =
                response.map_err(|error| without_path(&error.to_string(), &request.url))?;
            let answer: WebhookAnswer = serde_json::from_slice(&response)
                .map_err(|error| WebhookError(format!("its answer cannot be read: {error}")))?;
            if let Some(reason) = &answer.reason {
                tracing::info!(reason, "the webhook gave a reason");
            }
            Ok(match answer.decision {
                WireDecision::Accept => WebhookDecision::Accept,
                WireDecision::Decline => WebhookDecision::Decline,
            })
        })
    }
}

/// Removes the path from an error for the log: the path of a webhook is often its secret.
fn without_path(why: &str, url: &str) -> WebhookError {
    WebhookError(match path(url) {
        "" => why.to_owned(),
        path => why.replace(path, ""),
    })
}

/// The path of a URL, without a trailing slash.
fn path(url: &str) -> &str {
    let address = url.split(['?', '#']).next().unwrap_or(url);
    let host = address.find("://").map_or(0, |at| at + 3);
    let path = address[host..]
        .find('/')
        .map_or("", |at| &address[host + at..]);
    path.trim_end_matches('/')
}

/// Returns the address and token of a request. A configured token that is missing is an error.
fn endpoint(request: &WebhookRequest) -> Result<Endpoint, String> {
    let endpoint: Endpoint = request.url.parse().map_err(|error| format!("{error}"))?;
    // The response may repeat a part of the path.
    let endpoint = path(&request.url)
        .split('/')
        .fold(endpoint, Endpoint::with_secret);
    let endpoint = endpoint
        .with_header("accept", "application/json")
        .map_err(|error| error.to_string())?;
    let Some(name) = &request.token_env else {
        return Ok(endpoint);
    };
    let token = std::env::var(name).ok().filter(|it| !it.is_empty());
    let token = token.ok_or_else(|| {
        format!(
            "`unattended_webhook_token_env` names {name}, which is not set; set it and start again"
        )
    })?;
    endpoint.with_key(&token).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
