//! Tokens of OAuth 2, for users who sign in with a vendor: in a browser with a proof key (RFC
//! 7636), or with a code on another device (RFC 8628).

mod redirect;

pub use redirect::{RedirectAnswer, RedirectError, RedirectListener};

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::http::escaped;
use crate::{CallError, CallTimeouts, Endpoint, ModelClient};

/// Timeout for a vendor's tokens.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Default interval of polls for the tokens of another device.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Secret fields of a form.
const SECRETS: [&str; 4] = ["refresh_token", "code", "code_verifier", "device_code"];

/// Tokens of a user who signed in. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct OauthTokens {
    /// The token for calls.
    #[serde(rename = "access_token")]
    pub access: String,
    /// The token that renews it.
    #[serde(rename = "refresh_token")]
    pub refresh: Option<String>,
    /// Lifetime of the access token, in seconds.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for OauthTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

/// A code that the user enters on another device.
#[derive(Clone, Deserialize)]
pub struct DeviceCode {
    device_code: String,
    /// The code for the user to enter.
    pub user_code: String,
    /// The page on which the user enters it.
    #[serde(alias = "verification_url")]
    pub verification_uri: String,
    /// Lifetime of the code, in seconds.
    pub expires_in: u64,
    interval: Option<u64>,
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceCode")
    }
}

/// A proof that the client which redeems a code is the one that requested it.
#[derive(Clone)]
pub struct PkcePair {
    /// The secret that is sent with the code.
    pub verifier: String,
    /// The hash that is sent before.
    pub challenge: String,
}

impl PkcePair {
    /// Returns a pair with a random verifier.
    pub fn new() -> Result<Self, CallError> {
        let verifier = random_token()?;
        Ok(Self {
            challenge: challenge(&verifier),
            verifier,
        })
    }
}

impl fmt::Debug for PkcePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof")
    }
}

/// Returns the challenge of a verifier.
pub(crate) fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// Returns a random text that cannot be guessed.
pub fn random_token() -> Result<String, CallError> {
    let mut bytes = [0; 32];
    let result = rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes);
    result.map_err(|_| CallError::Malformed("the system has no randomness".to_owned()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Appends these parameters to the query of an address.
pub fn address(base: &str, query: &[(&str, &str)]) -> String {
    let separator = if base.contains('?') { '&' } else { '?' };
    format!("{base}{separator}{}", form(query))
}

/// Parses a query into names and values.
pub fn parse_query(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|it| !it.is_empty());
    let pairs = pairs.map(|it| it.split_once('=').unwrap_or((it, "")));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Writes names and values as a form.
pub fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    pairs.join("&")
}

/// Decodes a text of a query or a form.
pub(crate) fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

impl ModelClient {
    /// Requests tokens for a form.
    pub async fn tokens(
        &self,
        token_url: &str,
        form: &[(&str, &str)],
    ) -> Result<OauthTokens, CallError> {
        self.post_form(token_url, form).await
    }

    /// Requests a code that the user enters on another device.
    pub async fn device_code(
        &self,
        device_url: &str,
        form: &[(&str, &str)],
    ) -> Result<DeviceCode, CallError> {
        self.post_form(device_url, form).await
    }

    /// Waits until the user has entered a code, and returns the tokens for it.
    pub async fn tokens_of_device(
        &self,
        token_url: &str,
        client_id: &str,
        code: &DeviceCode,
    ) -> Result<OauthTokens, CallError> {
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", &code.device_code),
            ("client_id", client_id),
        ];
        let mut interval = code.interval.map_or(POLL_INTERVAL, Duration::from_secs);
        loop {
            // A vendor that sends 0 is not polled in a busy loop.
            tokio::time::sleep(interval.max(Duration::from_millis(100))).await;
            match self.tokens(token_url, &form).await {
                Err(CallError::Vendor(error)) if error.message == "authorization_pending" => {}
                Err(CallError::Vendor(error)) if error.message == "slow_down" => {
                    interval += POLL_INTERVAL;
                }
                Err(error) if error.is_transient() => {}
                outcome => return outcome,
            }
        }
    }

    async fn post_form<T: for<'a> Deserialize<'a>>(
        &self,
        address: &str,
        pairs: &[(&str, &str)],
    ) -> Result<T, CallError> {
        let malformed = |what: String| CallError::Malformed(what);
        let endpoint: Endpoint = address.parse().map_err(|it| malformed(format!("{it}")))?;
        let mut endpoint = endpoint
            .with_header("content-type", "application/x-www-form-urlencoded")
            .and_then(|it| it.with_header("accept", "application/json"))
            .map_err(|error| malformed(error.to_string()))?;
        for (_, value) in pairs.iter().filter(|(name, _)| SECRETS.contains(name)) {
            endpoint = endpoint.with_secret(value);
        }
        let limits = CallTimeouts {
            connect: TOKEN_TIMEOUT,
            idle: TOKEN_TIMEOUT,
            total: 2 * TOKEN_TIMEOUT,
        };
        let body = form(pairs).into_bytes();
        let response = self.exchange(&endpoint, body, limits).await?;
        // The error does not show the response, because it may contain tokens.
        serde_json::from_slice(&response)
            .map_err(|_| malformed(format!("{address} returned no valid OAuth 2 tokens")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_what_the_standard_says() {
        // The example of RFC 7636.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let expected = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(challenge(verifier), expected);
        let (one, other) = (PkcePair::new(), PkcePair::new());
        assert_ne!(one.expect("one").verifier, other.expect("another").verifier);
    }

    #[test]
    fn addresses_encode_their_parameters() {
        let url = address("https://a/b?c=d", &[("e f", "g&h=ä"), ("i", "")]);
        assert_eq!(url, "https://a/b?c=d&e%20f=g%26h%3D%C3%A4&i=");
        let (_, query) = url.split_once('?').expect("a query");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("c", "d"), pair("e f", "g&h=ä"), pair("i", "")];
        assert_eq!(parse_query(query), expected);
        assert_eq!(parse_query("a+b=%zz%4"), [pair("a b", "%zz%4")]);
    }
}
