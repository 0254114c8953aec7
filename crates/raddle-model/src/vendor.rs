//! What a vendor's own words for a failure mean.

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use serde_json::Value;

use crate::{CallError, Fault, VendorError};

/// How much is kept of what a vendor says.
const MESSAGE_LETTERS_MAX: usize = 2000;

/// A failure in a vendor's words.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Names for it: its code and its type.
    names: Vec<String>,
    message: Option<String>,
}

impl Words {
    /// Reads what vendors put where an error should be: an object, or only a text.
    pub(crate) fn of(error: &Value) -> Self {
        let member = |name: &str| error[name].as_str().map(str::to_owned);
        let names = ["code", "type", "reason"].into_iter().filter_map(member);
        Self {
            names: names.collect(),
            message: member("message").or_else(|| error.as_str().map(str::to_owned)),
        }
    }

    /// Reads the body of an answer that is an error.
    fn of_body(body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let found = ["error", "detail"].into_iter().find_map(|it| value.get(it));
        let mut words = Self::of(found.unwrap_or(&value));
        if words.message.is_none() && !body.trim().is_empty() {
            words.message = Some(body.trim().to_owned());
        }
        words
    }

    /// What they mean.
    pub(crate) fn error(self, status: Option<u16>) -> VendorError {
        let message = self.message.as_deref().unwrap_or_default();
        let fault = fault(status, &self.names, message);
        let retry_after = matches!(fault, Fault::RateLimit | Fault::Overloaded)
            .then(|| said_wait(message))
            .flatten();
        VendorError {
            fault,
            status,
            message: match (message, self.names.first()) {
                ("", None) => "it gave no reason".to_owned(),
                ("", Some(name)) => name.clone(),
                (message, _) => message.chars().take(MESSAGE_LETTERS_MAX).collect(),
            },
            retry_after,
        }
    }
}

/// What an answer that is no success means.
pub(crate) fn refused(status: u16, headers: &HeaderMap, body: &str, now: SystemTime) -> CallError {
    let mut error = Words::of_body(body).error(Some(status));
    error.retry_after = asked_wait(headers, now).or(error.retry_after);
    CallError::Vendor(Box::new(error))
}

/// Parts of the names that vendors have for their faults. The first that fits counts.
const NAMES: &[(Fault, &[&str])] = &[
    (
        Fault::ContextFull,
        &["context_length", "context_window", "context_size"],
    ),
    (
        Fault::Quota,
        &["quota", "usage_limit", "usage_not_included", "billing"],
    ),
    (Fault::RateLimit, &["rate_limit", "too_many_requests"]),
    (Fault::Overloaded, &["overloaded", "slow_down"]),
    (
        Fault::Unauthorized,
        &["api_key", "authentication", "permission"],
    ),
    (Fault::NotFound, &["model_not_found"]),
    (
        Fault::Policy,
        &["content_filter", "policy", "safety", "invalid_prompt"],
    ),
    (Fault::CutShort, &["max_output_tokens", "max_tokens"]),
    (Fault::Internal, &["server_error", "internal_error"]),
];

/// Some vendors say only in words that the history is too long.
const CONTEXT_WORDS: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "prompt is too long",
];

fn fault(status: Option<u16>, names: &[String], message: &str) -> Fault {
    let is_named = |parts: &&[&str]| {
        let mut parts = parts.iter();
        parts.any(|part| names.iter().any(|name| name.contains(part)))
    };
    if let Some((fault, _)) = NAMES.iter().find(|(_, parts)| is_named(parts)) {
        return *fault;
    }
    let is_bad = status.is_none_or(|it| matches!(it, 400 | 413 | 422));
    let message = message.to_lowercase();
    if is_bad && CONTEXT_WORDS.iter().any(|it| message.contains(it)) {
        return Fault::ContextFull;
    }
    match status {
        None if is_named(&&["invalid"][..]) => Fault::BadRequest,
        None => Fault::Internal,
        Some(400 | 413 | 422) => Fault::BadRequest,
        Some(401 | 403) => Fault::Unauthorized,
        Some(404) => Fault::NotFound,
        Some(429) => Fault::RateLimit,
        Some(503 | 529) => Fault::Overloaded,
        Some(408 | 500..=599) => Fault::Internal,
        Some(_) => Fault::Other,
    }
}

/// When the vendor wants to be asked again, from its headers: milliseconds, seconds, or a date.
fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let number = |name: &str| text(name).and_then(|it| it.trim().parse::<f64>().ok());
    let wait = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    if let Some(ms) = number("retry-after-ms") {
        return wait(ms / 1000.0);
    }
    if let Some(seconds) = number("retry-after") {
        return wait(seconds);
    }
    let date = httpdate::parse_http_date(text("retry-after")?.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// The same from its words: "try again in 1.5s", "in 6m0s", "in 20 seconds", "in 300ms".
fn said_wait(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    let (_, mut rest) = message.split_once("try again in ")?;
    let mut seconds = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = after.trim_start();
        let letters = after.find(|it: char| !it.is_ascii_alphabetic());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let scale = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * scale);
        rest = after;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn check(status: u16, body: &str, wanted: Fault) {
        let error = refused(status, &HeaderMap::new(), body, UNIX_EPOCH);
        let CallError::Vendor(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.fault, wanted, "{status} {body}");
        assert_eq!(error.status, Some(status));
        assert!(!error.message.is_empty());
    }

    #[test]
    fn refusals_have_a_kind() {
        let named = |name: &str| format!(r#"{{"error":{{"message":"no","code":"{name}"}}}}"#);
        for (status, body, wanted) in [
            (400, named("context_length_exceeded"), Fault::ContextFull),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8 tokens","code":400}}"#.into(),
                Fault::ContextFull,
            ),
            (
                400,
                r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"too many"}}"#.into(),
                Fault::ContextFull,
            ),
            (400, named("invalid_value"), Fault::BadRequest),
            (400, r#"{"error":"no such thing"}"#.into(), Fault::BadRequest),
            (400, r#"{"detail":"Unsupported parameter"}"#.into(), Fault::BadRequest),
            (401, named("invalid_api_key"), Fault::Unauthorized),
            (403, "<html>forbidden</html>".into(), Fault::Unauthorized),
            (404, named("model_not_found"), Fault::NotFound),
            (404, String::new(), Fault::NotFound),
            (429, named("rate_limit_exceeded"), Fault::RateLimit),
            (429, String::new(), Fault::RateLimit),
            (429, named("insufficient_quota"), Fault::Quota),
            (
                429,
                r#"{"error":{"type":"usage_limit_reached","message":"used up"}}"#.into(),
                Fault::Quota,
            ),
            (500, String::new(), Fault::Internal),
            (502, "<html>".into(), Fault::Internal),
            (503, named("slow_down"), Fault::Overloaded),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#.into(),
                Fault::Overloaded,
            ),
            (302, String::new(), Fault::Other),
        ] {
            check(status, &body, wanted);
        }
    }

    #[test]
    fn the_time_to_wait_is_read_from_headers_and_words() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, wanted) in [
            ("retry-after", "7", Some(7000)),
            ("retry-after", " 1.5 ", Some(1500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7000)),
            ("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT", Some(0)),
            ("retry-after", "-3", None),
            ("retry-after", "soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            let error = refused(429, &headers, "", now);
            let found = error.retry_after().map(|it| it.as_millis());
            assert_eq!(found, wanted, "{name}: {value}");
        }
        for (message, wanted) in [
            (
                "Rate limit reached. Please try again in 1.898s. Visit …",
                Some(1898),
            ),
            ("try again in 20ms", Some(20)),
            ("Try again in 6m0s.", Some(360_000)),
            ("please try again in 35 seconds.", Some(35_000)),
            ("try again in 1h2m3s", Some(3_723_000)),
            ("try again in a while", None),
            ("try again", None),
        ] {
            assert_eq!(
                said_wait(message).map(|it| it.as_millis()),
                wanted,
                "{message}"
            );
        }
    }
}
