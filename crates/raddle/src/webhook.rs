//! Questions that nobody is there to answer, posted to an address.

use std::time::Duration;

use raddle_core::ports::{BoxFuture, Webhook, WebhookDecision, WebhookRequest};
use raddle_model::{CallTimeouts, Endpoint, ModelClient};
use serde::Deserialize;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Posts questions over HTTP.
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
    fn send(&self, put: WebhookRequest) -> BoxFuture<'static, Result<WebhookDecision, String>> {
        let client = self.0.clone();
        Box::pin(async move {
            let limits = CallTimeouts {
                connect: CONNECT.min(put.within),
                idle: put.within,
                total: put.within,
            };
            let endpoint = endpoint(&put).map_err(|error| without_path(&error, &put.url))?;
            let body = put.question.to_string().into_bytes();
            let said = client.exchange(&endpoint, body, limits).await;
            let said = said.map_err(|error| without_path(&error.to_string(), &put.url))?;
            let answer: WebhookAnswer = serde_json::from_slice(&said)
                .map_err(|error| format!("its answer cannot be read: {error}"))?;
            if let Some(reason) = &answer.reason {
                tracing::info!(reason, "the webhook says why");
            }
            Ok(match answer.decision {
                WireDecision::Accept => WebhookDecision::Accept,
                WireDecision::Decline => WebhookDecision::Decline,
            })
        })
    }
}

/// What went wrong, for the log. The path of such an address is often its secret.
fn without_path(why: &str, url: &str) -> String {
    match path(url) {
        "" => why.to_owned(),
        path => why.replace(path, ""),
    }
}

/// The path of an address, without a slash at its end.
fn path(url: &str) -> &str {
    let address = url.split(['?', '#']).next().unwrap_or(url);
    let host = address.find("://").map_or(0, |at| at + 3);
    let path = address[host..]
        .find('/')
        .map_or("", |at| &address[host + at..]);
    path.trim_end_matches('/')
}

/// Where a question goes to, and with which token. A token that should be there and is not is never left out.
fn endpoint(put: &WebhookRequest) -> Result<Endpoint, String> {
    let endpoint: Endpoint = put.url.parse().map_err(|error| format!("{error}"))?;
    // Whoever is there may repeat a part of it.
    let endpoint = path(&put.url)
        .split('/')
        .fold(endpoint, Endpoint::with_secret);
    let endpoint = endpoint
        .with_header("accept", "application/json")
        .map_err(|error| error.to_string())?;
    let Some(name) = &put.token_env else {
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
