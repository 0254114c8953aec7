//! The provider's configuration in the form that a call needs.

use std::time::Duration;

use raddle_config::Provider;
use raddle_model::{CallTimeouts, Endpoint, EndpointError, WireFormat};

use super::keys::ApiKey;
use super::outcome::CallFailure;

/// Returns the wire format of the provider.
pub(crate) fn wire(provider: &Provider) -> Result<WireFormat, CallFailure> {
    let Some(name) = provider.wire_api.as_deref() else {
        return Ok(WireFormat::Responses);
    };
    WireFormat::from_name(name).ok_or_else(|| {
        let names = WireFormat::ALL.map(|it| format!("\"{}\"", it.name()));
        CallFailure::NotConfigured(format!(
            "the model provider `{}` has wire_api = \"{name}\"; write one of {}",
            provider.name,
            names.join(", ")
        ))
    })
}

/// The identity for sealed items: the provider on this wire.
pub(crate) fn vendor(wire: WireFormat, provider: &Provider) -> String {
    format!("{}/{}", wire.name(), provider.name)
}

pub(crate) fn limits(provider: &Provider) -> CallTimeouts {
    let usual = CallTimeouts::default();
    let limit = |ms: Option<u32>, usual| ms.map_or(usual, |it| Duration::from_millis(it.into()));
    CallTimeouts {
        connect: limit(provider.connect_timeout_ms, usual.connect),
        idle: limit(provider.stream_idle_timeout_ms, usual.idle),
        total: limit(provider.total_timeout_ms, usual.total),
    }
}

/// Returns the address of the provider, with the query and headers of every request.
pub(crate) fn endpoint(
    wire: WireFormat,
    provider: &Provider,
    key: Option<&ApiKey>,
) -> Result<Endpoint, CallFailure> {
    let mut endpoint: Endpoint = provider.base_url.parse().map_err(unusable)?;
    for (name, value) in &provider.query_params {
        endpoint = endpoint.with_query(name, value);
    }
    for (name, value) in &provider.http_headers {
        endpoint = endpoint.with_header(name, value).map_err(unusable)?;
    }
    for (name, variable) in &provider.env_http_headers {
        // As in Codex, an unset or empty variable sends no header.
        let value = std::env::var(variable).ok();
        if let Some(value) = value.filter(|it| !it.trim().is_empty()) {
            endpoint = endpoint.with_header(name, &value).map_err(unusable)?;
        }
    }
    if let Some(key) = key {
        let with_key = match wire.key_header() {
            Some(header) => endpoint.with_header(header, key.text()),
            None => endpoint.with_key(key.text()),
        };
        endpoint = with_key.map_err(unusable)?;
    }
    Ok(endpoint)
}

fn unusable(error: EndpointError) -> CallFailure {
    CallFailure::NotConfigured(error.to_string())
}
