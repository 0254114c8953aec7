//! Tokens of OAuth 2, for whoever signs in with a vendor: in a browser with a proof of who asked (RFC 7636), or with a
//! code on another device (RFC 8628).

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::http::escaped;
use crate::{CallError, CallTimeouts, Endpoint, ModelClient};

/// How long a vendor may be silent until it gives tokens.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a vendor is asked for the tokens of another device, unless it says.
const INTERVAL: Duration = Duration::from_secs(5);

/// What of a form only the vendor should know.
const SECRETS: [&str; 4] = ["refresh_token", "code", "code_verifier", "device_code"];

/// What a vendor gives to one who signed in. None of it is shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct OauthTokens {
    /// What calls are made with.
    #[serde(rename = "access_token")]
    pub access: String,
    /// With what it is renewed.
    #[serde(rename = "refresh_token")]
    pub refresh: Option<String>,
    /// For how many seconds it is good.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for OauthTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

/// A code that is entered on another device.
#[derive(Clone, Deserialize)]
pub struct DeviceCode {
    device_code: String,
    /// The code.
    pub user_code: String,
    /// The page on which it is entered.
    #[serde(alias = "verification_url")]
    pub verification_uri: String,
    /// For how many seconds it is good.
    pub expires_in: u64,
    interval: Option<u64>,
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceCode")
    }
}

/// Shows that whoever brings a code is who asked for it.
#[derive(Clone)]
pub struct PkcePair {
    /// What is kept until then.
    pub verifier: String,
    /// What is told before.
    pub challenge: String,
}

impl PkcePair {
    /// One that nobody can guess.
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

/// What is told of a proof before it is shown.
pub(crate) fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// A text that nobody can guess.
pub fn random_token() -> Result<String, CallError> {
    let mut bytes = [0; 32];
    let filled = rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes);
    filled.map_err(|_| CallError::Malformed("the system has no randomness".to_owned()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// An address that says these in its query.
pub fn address(base: &str, query: &[(&str, &str)]) -> String {
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}{}", form(query))
}

/// What a query says, each with its name.
pub fn parse_query(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|it| !it.is_empty());
    let pairs = pairs.map(|it| it.split_once('=').unwrap_or((it, "")));
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    pairs.join("&")
}

/// A text of a query or a form as it was meant.
pub(crate) fn plain(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = hex.and_then(|it| u8::from_str_radix(it, 16).ok());
        (rest, _) = match (first, byte) {
            (b'%', Some(byte)) => (&after[2..], bytes.push(byte)),
            (b'+', _) => (after, bytes.push(b' ')),
            (other, _) => (after, bytes.push(*other)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl ModelClient {
    /// Gets tokens for what a form says.
    pub async fn tokens(
        &self,
        token_url: &str,
        form: &[(&str, &str)],
    ) -> Result<OauthTokens, CallError> {
        self.post_form(token_url, form).await
    }

    /// Gets a code that is entered on another device.
    pub async fn device_code(
        &self,
        device_url: &str,
        form: &[(&str, &str)],
    ) -> Result<DeviceCode, CallError> {
        self.post_form(device_url, form).await
    }

    /// Waits until someone has entered a code, and gets tokens for it.
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
        let mut interval = code.interval.map_or(INTERVAL, Duration::from_secs);
        loop {
            // A vendor that says 0 is not asked all the time either.
            tokio::time::sleep(interval.max(Duration::from_millis(100))).await;
            match self.tokens(token_url, &form).await {
                Err(CallError::Vendor(error)) if error.message == "authorization_pending" => {}
                Err(CallError::Vendor(error)) if error.message == "slow_down" => {
                    interval += INTERVAL;
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
        let wrong = |what: String| CallError::Malformed(what);
        let endpoint: Endpoint = address.parse().map_err(|it| wrong(format!("{it}")))?;
        let mut endpoint = endpoint
            .with_header("content-type", "application/x-www-form-urlencoded")
            .and_then(|it| it.with_header("accept", "application/json"))
            .map_err(|error| wrong(error.to_string()))?;
        for (_, value) in pairs.iter().filter(|(name, _)| SECRETS.contains(name)) {
            endpoint = endpoint.with_secret(value);
        }
        let limits = CallTimeouts {
            connect: TOKEN_TIMEOUT,
            idle: TOKEN_TIMEOUT,
            total: 2 * TOKEN_TIMEOUT,
        };
        let body = form(pairs).into_bytes();
        let given = self.exchange(&endpoint, body, limits).await?;
        // What is wrong with it is not shown with it: there may be tokens in it.
        serde_json::from_slice(&given)
            .map_err(|_| wrong(format!("{address} gave no tokens as OAuth 2 has them")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_what_the_standard_says() {
        // The example of RFC 7636.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let wanted = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(challenge(verifier), wanted);
        let (one, other) = (PkcePair::new(), PkcePair::new());
        assert_ne!(one.expect("one").verifier, other.expect("another").verifier);
    }

    #[test]
    fn addresses_say_what_is_asked_and_back() {
        let asked = address("https://a/b?c=d", &[("e f", "g&h=ä"), ("i", "")]);
        assert_eq!(asked, "https://a/b?c=d&e%20f=g%26h%3D%C3%A4&i=");
        let (_, query) = asked.split_once('?').expect("a query");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let wanted = [pair("c", "d"), pair("e f", "g&h=ä"), pair("i", "")];
        assert_eq!(parse_query(query), wanted);
        assert_eq!(parse_query("a+b=%zz%4"), [pair("a b", "%zz%4")]);
    }
}
