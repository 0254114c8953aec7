//! Access to the server: every call, unless the script names keys or issues tokens.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::oauth::{address, challenge};

/// Rules of a script for access.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessRules {
    /// The keys with which a call is answered. Others get 401.
    #[serde(default)]
    keys: Vec<String>,
    /// Number of calls for which each token is valid; without it, all.
    calls_per_token: Option<u64>,
    /// Number of polls that a device must wait.
    #[serde(default)]
    pending: u64,
}

/// Checks access, and issues tokens to every client that asks by OAuth 2.
#[derive(Debug)]
pub(super) struct AccessGuard {
    access: AccessRules,
    issued: Mutex<IssuedTokens>,
}

#[derive(Debug, Default)]
struct IssuedTokens {
    /// Counter for the names of tokens and codes.
    counter: u64,
    /// Number of times that tokens were issued.
    issue_count: u64,
    /// Tokens, with the number of calls for which each is still valid.
    tokens: HashMap<String, u64>,
    refresh: HashSet<String>,
    /// Codes of browsers, with the challenge of each.
    codes: HashMap<String, String>,
    /// Codes of devices, with the number of polls that each must still wait.
    devices: HashMap<String, u64>,
}

impl IssuedTokens {
    fn name(&mut self, kind: &str) -> String {
        self.counter += 1;
        format!("mock-{kind}-{}", self.counter)
    }
}

/// Response of the token endpoints.
pub(super) enum TokenReply {
    Whole(u16, Value),
    /// Redirects the browser to this address.
    Redirect(String),
}

impl AccessGuard {
    pub(super) fn new(access: AccessRules) -> Self {
        Self {
            access,
            issued: Mutex::default(),
        }
    }

    /// Returns whether a call with these headers is answered. It uses up one of a token's calls.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(key) = key(headers) else {
            return false;
        };
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        match issued.tokens.get_mut(key) {
            Some(0) => false,
            Some(remaining) => {
                *remaining -= 1;
                true
            }
            None => self.access.keys.iter().any(|it| it == key),
        }
    }

    /// Returns the number of times that tokens were issued.
    pub(super) fn issue_count(&self) -> u64 {
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.issue_count
    }

    /// Answers a request for tokens: a path, with the parameters of its query or its form.
    pub(super) fn answer(&self, path: &str, parameters: &[(String, String)]) -> TokenReply {
        let value = |name: &str| {
            let parameter = parameters.iter().find(|(it, _)| it == name);
            parameter.map_or("", |(_, value)| value)
        };
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        match path {
            "/oauth/authorize" => {
                let code = issued.name("code");
                issued
                    .codes
                    .insert(code.clone(), value("code_challenge").to_owned());
                let query = [("code", &*code), ("state", value("state"))];
                TokenReply::Redirect(address(value("redirect_uri"), &query))
            }
            "/oauth/device" => {
                let code = issued.name("device");
                issued.devices.insert(code.clone(), self.access.pending);
                TokenReply::Whole(
                    200,
                    json!({ "device_code": code, "user_code": "MOCK-CODE", "expires_in": 600, "interval": 0,
                        "verification_uri": "http://127.0.0.1/device" }),
                )
            }
            "/oauth/token" => match self.token(&mut issued, value) {
                Ok(tokens) => TokenReply::Whole(200, tokens),
                Err(error) => TokenReply::Whole(400, json!({ "error": error })),
            },
            _ => TokenReply::Whole(404, json!({ "error": "not_found" })),
        }
    }

    fn token<'a>(
        &self,
        issued: &mut IssuedTokens,
        value: impl Fn(&str) -> &'a str,
    ) -> Result<Value, &'static str> {
        match value("grant_type") {
            "authorization_code" => {
                let expected_challenge = issued.codes.remove(value("code"));
                if expected_challenge != Some(challenge(value("code_verifier"))) {
                    return Err("invalid_grant");
                }
            }
            "refresh_token" => {
                if !issued.refresh.remove(value("refresh_token")) {
                    return Err("invalid_grant");
                }
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                let code = value("device_code");
                match issued.devices.get_mut(code) {
                    None => return Err("expired_token"),
                    Some(0) => drop(issued.devices.remove(code)),
                    Some(remaining) => {
                        *remaining -= 1;
                        return Err("authorization_pending");
                    }
                }
            }
            _ => return Err("unsupported_grant_type"),
        }
        let (access, refresh) = (issued.name("token"), issued.name("refresh"));
        let calls = self.access.calls_per_token.unwrap_or(u64::MAX);
        issued.tokens.insert(access.clone(), calls);
        issued.refresh.insert(refresh.clone());
        issued.issue_count += 1;
        Ok(
            json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 }),
        )
    }
}

/// Returns the key of a call, as any of the wires sends it.
fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = || text(AUTHORIZATION.as_str())?.strip_prefix("Bearer ");
    let named = || text("x-api-key").or_else(|| text("x-goog-api-key"));
    bearer().or_else(named)
}
