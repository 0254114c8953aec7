//! What the configuration says of a provider, as a call needs it.

use std::time::Duration;

use raddle_model::{Endpoint, EndpointError, Limits};
use raddle_server::Provider;

use super::outcome::CallFailed;

/// Whose sealed items a provider's are: its own, on this wire.
pub(super) fn vendor(provider: &Provider) -> String {
    format!("responses/{}", provider.name)
}

pub(super) fn limits(provider: &Provider) -> Limits {
    let usual = Limits::default();
    let limit = |ms: Option<u32>, usual| ms.map_or(usual, |it| Duration::from_millis(it.into()));
    Limits {
        connect: limit(provider.connect_timeout_ms, usual.connect),
        idle: limit(provider.stream_idle_timeout_ms, usual.idle),
        total: limit(provider.total_timeout_ms, usual.total),
    }
}

/// Where the provider is, and what every request says.
pub(super) fn endpoint(provider: &Provider) -> Result<Endpoint, CallFailed> {
    if let Some(wire) = provider.wire_api.as_deref().filter(|it| *it != "responses") {
        return Err(CallFailed::NotConfigured(format!(
            "the model provider `{}` has wire_api = \"{wire}\", and only \"responses\" is supported so far",
            provider.name
        )));
    }
    let mut endpoint: Endpoint = provider.base_url.parse().map_err(unusable)?;
    for (name, value) in &provider.query_params {
        endpoint = endpoint.with_query(name, value);
    }
    for (name, value) in &provider.http_headers {
        endpoint = endpoint.with_header(name, value).map_err(unusable)?;
    }
    for (name, variable) in &provider.env_http_headers {
        // As in Codex, one that is not set is not sent.
        if let Ok(value) = std::env::var(variable) {
            endpoint = endpoint.with_header(name, &value).map_err(unusable)?;
        }
    }
    if let Some(variable) = &provider.env_key {
        let key = std::env::var(variable).map_err(|_| {
            CallFailed::NotConfigured(format!("the environment variable {variable} is not set"))
        })?;
        endpoint = endpoint.with_key(key.trim()).map_err(unusable)?;
    }
    Ok(endpoint)
}

fn unusable(error: EndpointError) -> CallFailed {
    CallFailed::NotConfigured(error.to_string())
}
