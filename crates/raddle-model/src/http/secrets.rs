//! Secrets of the vendor, and their redaction from errors: some vendors repeat them.

use std::fmt;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::escaped;
use crate::CallError;
use crate::oauth::decoded;
use crate::vendor_error::truncate;

/// A shorter value is not treated as a key: it may be an ordinary word.
const SECRET_CHARS_MIN: usize = 8;

/// The replacement of a secret.
const REDACTED: &str = "…";

/// The credentials of a request, in every spelling in which they may come back.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn add(&mut self, value: &str) {
        for spelling in spellings(value.trim()) {
            if spelling.chars().count() >= SECRET_CHARS_MIN && !self.0.contains(&spelling) {
                self.0.push(spelling);
            }
        }
        // Longer spellings first, because they may contain others.
        self.0.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    /// Redacts a text. Returns whether it contained a secret.
    fn redact(&self, text: &mut String) -> bool {
        let mut is_redacted = false;
        for secret in &self.0 {
            if text.contains(secret) {
                *text = text.replace(secret, REDACTED);
                is_redacted = true;
            }
        }
        is_redacted
    }

    /// Redacts the body of an error response.
    pub(super) fn redact_body(&self, body: &mut String) {
        self.redact(body);
        // JSON can spell every character in more than one way.
        if let Ok(mut value) = serde_json::from_str(body)
            && self.redact_value(&mut value)
        {
            *body = value.to_string();
        }
    }

    fn redact_value(&self, value: &mut Value) -> bool {
        let mut is_redacted = false;
        match value {
            Value::String(text) => is_redacted = self.redact(text),
            Value::Array(values) => {
                for value in values {
                    is_redacted |= self.redact_value(value);
                }
            }
            Value::Object(members) => {
                for (mut name, mut value) in std::mem::take(members) {
                    is_redacted |= self.redact(&mut name);
                    is_redacted |= self.redact_value(&mut value);
                    members.insert(name, value);
                }
            }
            _ => {}
        }
        is_redacted
    }

    pub(crate) fn redact_error(&self, mut error: CallError) -> CallError {
        match &mut error {
            CallError::Connect { what, .. }
            | CallError::Untrusted { what, .. }
            | CallError::BrokeOff(what)
            | CallError::Malformed(what) => self.redact(what),
            CallError::Vendor(error) => {
                let is_redacted = self.redact(&mut error.message);
                truncate(&mut error.message);
                is_redacted
            }
            CallError::Silent { .. } | CallError::TooLong { .. } => false,
        };
        error
    }
}

/// Returns the spellings in which a value may come back: as it is, decoded if it was escaped, and
/// escaped as in addresses and JSON.
fn spellings(value: &str) -> Vec<String> {
    let with_plus = percent_decode_str(value).decode_utf8_lossy().into_owned();
    let bases = [
        value.to_owned(),
        value.to_lowercase(),
        decoded(value),
        with_plus,
    ];
    let spellings = bases.into_iter().flat_map(|base| {
        let address = escaped(&base);
        let json = Value::from(&*base).to_string();
        let json = json.trim_matches('"').to_owned();
        [
            with_lower_digits(&address),
            address,
            json.replace('/', "\\/"),
            json,
            base,
        ]
    });
    spellings.collect()
}

/// Returns a percent-encoded text with lower-case digits.
fn with_lower_digits(escaped: &str) -> String {
    let mut parts = escaped.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        text.extend(["%", &digits.to_lowercase(), rest]);
    }
    text
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vendor_error::VendorMessage;

    /// Regression: a key across the end of a truncated message was cut in two, and its half was not
    /// redacted.
    #[test]
    fn messages_are_redacted_before_they_are_truncated() {
        let mut secrets = Secrets::default();
        secrets.add("a-key-of-someones");
        let message = format!("{}a-key-of-someones, no", "é".repeat(1990));
        let vendor_message = VendorMessage::of(&json!({ "message": message + &" no".repeat(9) }));
        let error = CallError::Vendor(Box::new(vendor_message.error(None)));
        let CallError::Vendor(redacted) = secrets.redact_error(error) else {
            panic!("another error");
        };
        let expected = format!("{}{REDACTED}, no no n", "é".repeat(1990));
        assert_eq!(redacted.message, expected);
    }
}
