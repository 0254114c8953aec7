//! Who is answered: everyone, unless the script names keys or has tokens given.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::oauth::{address, challenge};

/// What a script says of who is answered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessRules {
    /// The keys with which a call is answered. Others get 401.
    #[serde(default)]
    keys: Vec<String>,
    /// For how many calls each token is good; without it, for all.
    calls_per_token: Option<u64>,
    /// How often a device is told to wait.
    #[serde(default)]
    pending: u64,
}

/// Sees to it, and gives tokens to everyone who asks as OAuth 2 wants it.
#[derive(Debug)]
pub(super) struct AccessGuard {
    access: AccessRules,
    issued: Mutex<IssuedTokens>,
}

#[derive(Debug, Default)]
struct IssuedTokens {
    /// Numbers everything that is given.
    number: u64,
    /// How many times tokens were given.
    times: u64,
    /// Tokens, and for how many calls each is still good.
    tokens: HashMap<String, u64>,
    refresh: HashSet<String>,
    /// Codes of browsers, with the challenge that each came with.
    codes: HashMap<String, String>,
    /// Codes of devices, and how often each is still told to wait.
    devices: HashMap<String, u64>,
}

impl IssuedTokens {
    fn name(&mut self, what: &str) -> String {
        self.number += 1;
        format!("mock-{what}-{}", self.number)
    }
}

/// What is answered to one who wants tokens.
pub(super) enum TokenReply {
    Whole(u16, Value),
    /// Its browser is sent there.
    Redirect(String),
}

impl AccessGuard {
    pub(super) fn new(access: AccessRules) -> Self {
        Self {
            access,
            issued: Mutex::default(),
        }
    }

    /// Whether a call with these headers is answered. It uses up one of a token's calls.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(key) = key(headers) else {
            return false;
        };
        let mut given = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        match given.tokens.get_mut(key) {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => self.access.keys.iter().any(|it| it == key),
        }
    }

    /// How many times tokens were given.
    pub(super) fn times(&self) -> u64 {
        let given = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        given.times
    }

    /// Answers who wants tokens: at a path, with what its query or its form says.
    pub(super) fn answer(&self, path: &str, said: &[(String, String)]) -> TokenReply {
        let value = |name: &str| {
            let found = said.iter().find(|(it, _)| it == name);
            found.map_or("", |(_, value)| value)
        };
        let mut given = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        match path {
            "/oauth/authorize" => {
                let code = given.name("code");
                given
                    .codes
                    .insert(code.clone(), value("code_challenge").to_owned());
                let query = [("code", &*code), ("state", value("state"))];
                TokenReply::Redirect(address(value("redirect_uri"), &query))
            }
            "/oauth/device" => {
                let code = given.name("device");
                given.devices.insert(code.clone(), self.access.pending);
                TokenReply::Whole(
                    200,
                    json!({ "device_code": code, "user_code": "MOCK-CODE", "expires_in": 600, "interval": 0,
                        "verification_uri": "http://127.0.0.1/device" }),
                )
            }
            "/oauth/token" => match self.token(&mut given, value) {
                Ok(tokens) => TokenReply::Whole(200, tokens),
                Err(error) => TokenReply::Whole(400, json!({ "error": error })),
            },
            _ => TokenReply::Whole(404, json!({ "error": "not_found" })),
        }
    }

    fn token<'a>(
        &self,
        given: &mut IssuedTokens,
        value: impl Fn(&str) -> &'a str,
    ) -> Result<Value, &'static str> {
        match value("grant_type") {
            "authorization_code" => {
                let asked = given.codes.remove(value("code"));
                if asked != Some(challenge(value("code_verifier"))) {
                    return Err("invalid_grant");
                }
            }
            "refresh_token" => {
                if !given.refresh.remove(value("refresh_token")) {
                    return Err("invalid_grant");
                }
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                let code = value("device_code");
                match given.devices.get_mut(code) {
                    None => return Err("expired_token"),
                    Some(0) => drop(given.devices.remove(code)),
                    Some(left) => {
                        *left -= 1;
                        return Err("authorization_pending");
                    }
                }
            }
            _ => return Err("unsupported_grant_type"),
        }
        let (access, refresh) = (given.name("token"), given.name("refresh"));
        let calls = self.access.calls_per_token.unwrap_or(u64::MAX);
        given.tokens.insert(access.clone(), calls);
        given.refresh.insert(refresh.clone());
        given.times += 1;
        Ok(
            json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 }),
        )
    }
}

/// The key of a call, as any of the wires sends it.
fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = || text(AUTHORIZATION.as_str())?.strip_prefix("Bearer ");
    let named = || text("x-api-key").or_else(|| text("x-goog-api-key"));
    bearer().or_else(named)
}
