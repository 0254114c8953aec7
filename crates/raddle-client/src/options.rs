//! What a client is told when it is made.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use raddle_protocol::{ClientInfo, InitializeCapabilities, InitializeParams, extension};
use serde_json::{Value, json};

/// How a client introduces itself, and how it comes back.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who the client is.
    pub client_info: ClientInfo,
    /// Whether it may use what is experimental.
    pub experimental: bool,
    /// More extensions to opt into, with their settings. `raddle/seq` and `raddle/idempotency` are always there.
    pub extensions: BTreeMap<String, Value>,
    /// Notifications it does not want, by their names.
    pub opt_out: Vec<String>,
    /// How it comes back.
    pub reconnect: ReconnectPolicy,
    /// How long a server may take to be there and to greet.
    pub connect_timeout: Duration,
    /// How long a child may take to end, once it is told to, before it is killed.
    pub exit_timeout: Duration,
    /// The longest message to send. A server takes 32 MiB, unless it was started otherwise.
    pub message_bytes_max: usize,
}

impl Options {
    /// The usual options for a client of this name and version.
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

/// How often and when a client tries to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// How often in a row. A connection that lasted ten seconds begins the count anew; 0 never comes back.
    pub attempts_max: u32,
    /// How long it waits before the second attempt; the first is made at once.
    pub first: Duration,
    /// How long it waits at most. Between the two the wait doubles, and each is shortened by up to a half at random.
    pub most: Duration,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            first: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }
}

impl ReconnectPolicy {
    /// Never come back: what is lost is lost.
    pub const NEVER: Self = Self {
        attempts_max: 0,
        first: Duration::ZERO,
        most: Duration::ZERO,
    };

    /// How long to wait before an attempt, counted from 1.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        if attempt <= 1 {
            return Duration::ZERO;
        }
        let doubled = 2_u32.saturating_pow(attempt - 2);
        let wait = self.first.saturating_mul(doubled).min(self.most);
        // Many clients of one server that died do not come back in step.
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
        for (attempt, most_ms) in [
            (2, 100),
            (3, 200),
            (4, 400),
            (9, 10_000),
            (u32::MAX, 10_000),
        ] {
            let most = Duration::from_millis(most_ms);
            let wait = reconnect.wait(attempt);
            assert!(wait <= most && wait >= most / 2, "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn every_client_can_come_back() {
        let mut options = Options::new("it", "1");
        let told = json!({"role": "observer"});
        options
            .extensions
            .insert(extension::ROLES.to_owned(), told.clone());
        let wishes = options
            .initialize_params()
            .capabilities
            .expect("capabilities");
        let extensions = wishes.extensions.expect("extensions");
        assert_eq!(extensions[extension::ROLES], told);
        assert_eq!(extensions[extension::SEQ], json!({}));
        assert_eq!(extensions[extension::IDEMPOTENCY], json!({}));
    }
}
