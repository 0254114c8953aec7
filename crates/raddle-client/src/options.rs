//! Options of a client.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use raddle_protocol::{ClientInfo, InitializeCapabilities, InitializeParams, extension};
use serde_json::{Value, json};

/// Identity of a client, and its limits and timeouts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name and version, sent to the server in `initialize`.
    pub client_info: ClientInfo,
    /// Whether the client uses the experimental API.
    pub experimental: bool,
    /// Additional extensions to opt into, with their settings. `raddle/seq` and
    /// `raddle/idempotency` are always included.
    pub extensions: BTreeMap<String, Value>,
    /// Method names of the notifications that the server must not send.
    pub opt_out: Vec<String>,
    /// Number and delay of the attempts to reconnect.
    pub reconnect: ReconnectPolicy,
    /// Time for the server to accept the connection and answer `initialize`.
    pub connect_timeout: Duration,
    /// Time for a child to exit after its stdin is closed. Then it is killed.
    pub exit_timeout: Duration,
    /// Maximum length of an outgoing message. A server accepts 32 MiB by default.
    pub message_bytes_max: usize,
}

impl Options {
    /// Default options for a client with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            client_info: ClientInfo {
                name: name.into(),
                version: version.into(),
                title: None,
            },
            experimental: false,
            extensions: BTreeMap::new(),
            opt_out: Vec::new(),
            reconnect: ReconnectPolicy::default(),
            connect_timeout: Duration::from_secs(30),
            exit_timeout: Duration::from_secs(10),
            message_bytes_max: 32 << 20,
        }
    }

    pub(crate) fn initialize_params(&self) -> InitializeParams {
        let mut extensions = self.extensions.clone();
        for name in [extension::SEQ, extension::IDEMPOTENCY] {
            extensions
                .entry(name.to_owned())
                .or_insert_with(|| json!({}));
        }
        InitializeParams {
            client_info: self.client_info.clone(),
            capabilities: Some(InitializeCapabilities {
                experimental_api: self.experimental,
                explicit_gateway_oauth: false,
                extensions: Some(extensions),
                mcp_server_openai_form_elicitation: false,
                opt_out_notification_methods: (!self.opt_out.is_empty())
                    .then(|| self.opt_out.clone()),
                request_attestation: false,
            }),
        }
    }
}

/// Number and timing of the attempts to reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Maximum number of consecutive attempts; 0 disables reconnection. A connection that lasted
    /// ten seconds resets the count.
    pub attempts_max: u32,
    /// Delay before the second attempt. The first follows at once.
    pub delay_min: Duration,
    /// Maximum delay. The delay doubles with each attempt, and jitter shortens it by up to a half.
    pub delay_max: Duration,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            delay_min: Duration::from_millis(100),
            delay_max: Duration::from_secs(10),
        }
    }
}

impl ReconnectPolicy {
    /// The client ends when its connection is lost.
    pub const NEVER: Self = Self {
        attempts_max: 0,
        delay_min: Duration::ZERO,
        delay_max: Duration::ZERO,
    };

    /// Delay before an attempt, counted from 1.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        if attempt <= 1 {
            return Duration::ZERO;
        }
        let doubled = 2_u32.saturating_pow(attempt - 2);
        let wait = self.delay_min.saturating_mul(doubled).min(self.delay_max);
        // Jitter, so that many clients of a dead server do not reconnect in step.
        let random = RandomState::new().build_hasher().finish();
        wait - wait.mul_f64((random % 1000) as f64 / 2000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded() {
        let reconnect = ReconnectPolicy::default();
        assert_eq!(reconnect.wait(1), Duration::ZERO);
        for (attempt, max_ms) in [
            (2, 100),
            (3, 200),
            (4, 400),
            (9, 10_000),
            (u32::MAX, 10_000),
        ] {
            let max = Duration::from_millis(max_ms);
            let wait = reconnect.wait(attempt);
            assert!(wait <= max && wait >= max / 2, "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn every_client_opts_into_seq_and_idempotency() {
        let mut options = Options::new("it", "1");
        let settings = json!({"role": "observer"});
        options
            .extensions
            .insert(extension::ROLES.to_owned(), settings.clone());
        let capabilities = options
            .initialize_params()
            .capabilities
            .expect("capabilities");
        let extensions = capabilities.extensions.expect("extensions");
        assert_eq!(extensions[extension::ROLES], settings);
        assert_eq!(extensions[extension::SEQ], json!({}));
        assert_eq!(extensions[extension::IDEMPOTENCY], json!({}));
    }
}
