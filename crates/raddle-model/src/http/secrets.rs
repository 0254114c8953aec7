//! What only the vendor should know, and how it is kept out of what is told of a call: some vendors repeat it.

use std::fmt;

use serde_json::Value;

use super::escaped;
use crate::CallError;
use crate::oauth::plain;
use crate::vendor::cut;

/// What is shorter is no key, and could be any word.
const SECRET_LETTERS_MIN: usize = 8;

/// What is put in its place.
const HIDDEN: &str = "…";

/// What was sent so that the vendor lets us in, in every spelling in which it may come back.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn add(&mut self, value: &str) {
        for spelled in spellings(value.trim()) {
            if spelled.chars().count() >= SECRET_LETTERS_MIN && !self.0.contains(&spelled) {
                self.0.push(spelled);
            }
        }
        // What holds another goes first.
        self.0.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    /// Takes them out of a text. Answers whether there were any.
    fn redact(&self, text: &mut String) -> bool {
        let mut found = false;
        for secret in &self.0 {
            if text.contains(secret) {
                *text = text.replace(secret, HIDDEN);
                found = true;
            }
        }
        found
    }

    /// Takes them out of what came in place of an answer.
    pub(super) fn redact_body(&self, body: &mut String) {
        self.redact(body);
        // JSON can write every letter in more than one way.
        if let Ok(mut value) = serde_json::from_str(body)
            && self.redact_value(&mut value)
        {
            *body = value.to_string();
        }
    }

    fn redact_value(&self, value: &mut Value) -> bool {
        let mut found = false;
        match value {
            Value::String(text) => found = self.redact(text),
            Value::Array(values) => {
                for value in values {
                    found |= self.redact_value(value);
                }
            }
            Value::Object(members) => {
                for (mut name, mut value) in std::mem::take(members) {
                    found |= self.redact(&mut name);
                    found |= self.redact_value(&mut value);
                    members.insert(name, value);
                }
            }
            _ => {}
        }
        found
    }

    /// The error without them.
    pub(crate) fn redact_error(&self, mut error: CallError) -> CallError {
        match &mut error {
            CallError::Connect { what, .. }
            | CallError::Untrusted { what, .. }
            | CallError::BrokeOff(what)
            | CallError::Malformed(what) => self.redact(what),
            CallError::Vendor(error) => {
                let found = self.redact(&mut error.message);
                cut(&mut error.message);
                found
            }
            CallError::Silent { .. } | CallError::TooLong { .. } => false,
        };
        error
    }
}

/// How a value may come back: as it is, as it was meant if it was escaped, and escaped as addresses and JSON do it.
fn spellings(value: &str) -> Vec<String> {
    let meant = plain(&value.replace('+', "%2B"));
    let bases = [value.to_owned(), value.to_lowercase(), plain(value), meant];
    let spelled = bases.into_iter().flat_map(|base| {
        let address = escaped(&base);
        let json = Value::from(&*base).to_string();
        let json = json.trim_matches('"').to_owned();
        [
            in_small(&address),
            address,
            json.replace('/', "\\/"),
            json,
            base,
        ]
    });
    spelled.collect()
}

/// An escaped text with the small digits of others.
fn in_small(escaped: &str) -> String {
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
        formatter.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vendor::VendorMessage;

    /// A key that lies across the end of what is kept was cut in two, and half of it was not found.
    #[test]
    fn what_is_cut_was_hidden_before() {
        let mut secrets = Secrets::default();
        secrets.add("a-key-of-someones");
        let message = format!("{}a-key-of-someones, no", "é".repeat(1990));
        let words = VendorMessage::of(&json!({ "message": message + &" no".repeat(9) }));
        let error = CallError::Vendor(Box::new(words.error(None)));
        let CallError::Vendor(hidden) = secrets.redact_error(error) else {
            panic!("another error");
        };
        let wanted = format!("{}{HIDDEN}, no no n", "é".repeat(1990));
        assert_eq!(hidden.message, wanted);
    }
}
