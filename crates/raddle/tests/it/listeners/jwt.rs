//! Signed tokens, valid and invalid. The HMAC is implemented here, so that a mistake in the server's
//! own code does not sign what it would also accept.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub struct Jwt {
    pub header: String,
    pub now: u64,
    pub expires: Option<u64>,
    pub not_before: Option<u64>,
    pub issuer: Option<&'static str>,
    pub audience: Option<&'static str>,
}

impl Jwt {
    /// A token that is valid now.
    pub fn good() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("after 1970").as_secs();
        Self {
            header: r#"{"alg":"HS256","typ":"JWT"}"#.into(),
            now,
            expires: Some(now + 3600),
            not_before: None,
            issuer: Some("me"),
            audience: Some("raddle"),
        }
    }

    pub fn signed(&self, secret: &[u8]) -> String {
        let signed = self.body();
        let signature = hmac(secret, signed.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// With an empty signature.
    pub fn unsigned(&self) -> String {
        format!("{}.", self.body())
    }

    fn body(&self) -> String {
        let mut claims = serde_json::Map::new();
        let mut claim = |name: &str, value: Option<Value>| {
            claims.extend(value.map(|value| (name.to_owned(), value)));
        };
        claim("exp", self.expires.map(|it| json!(it)));
        claim("nbf", self.not_before.map(|it| json!(it)));
        claim("iss", self.issuer.map(|it| json!(it)));
        claim("aud", self.audience.map(|it| json!(it)));
        let claims = Value::Object(claims).to_string();
        format!(
            "{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(&self.header),
            BASE64_URL_SAFE_NO_PAD.encode(claims)
        )
    }
}

/// HMAC-SHA-256 with a key of at most 64 bytes.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut padded = [0; 64];
    padded[..key.len()].copy_from_slice(key);
    let pass = |pad: u8, text: &[u8]| -> [u8; 32] {
        let key = padded.map(|byte| byte ^ pad);
        Sha256::new()
            .chain_update(key)
            .chain_update(text)
            .finalize()
            .into()
    };
    pass(0x5c, &pass(0x36, message))
}
