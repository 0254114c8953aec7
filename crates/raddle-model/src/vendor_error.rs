//! Interprets a vendor's errors.

mod retry_after;

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use serde_json::Value;

use crate::{CallError, VendorError, VendorFault};

/// Maximum number of characters of a vendor's message.
const MESSAGE_CHARS_MAX: usize = 2000;

/// A vendor's error, parsed.
#[derive(Debug, Default)]
pub(crate) struct VendorMessage {
    /// Names of the error, in lower case: its code, its type.
    names: Vec<String>,
    /// Its code, if that is an HTTP status.
    status: Option<u16>,
    message: Option<String>,
    /// The delay that it asks for before a retry.
    retry_after: Option<Duration>,
}

impl VendorMessage {
    /// Parses a vendor's error: an object, or only a text.
    pub(crate) fn of(error: &Value) -> Self {
        let member = |name: &str| error[name].as_str();
        let names = ["code", "type", "reason", "status"].into_iter();
        let status = error["code"].as_u64().and_then(|it| it.try_into().ok());
        let details = || error["details"].as_array().into_iter().flatten();
        let violations = details().filter_map(|it| it["violations"].as_array());
        let detail_names = details().filter_map(|it| it["reason"].as_str());
        let detail_names =
            detail_names.chain(violations.flatten().filter_map(|it| it["quotaId"].as_str()));
        Self {
            names: names
                .filter_map(member)
                .chain(detail_names)
                .map(str::to_lowercase)
                .collect(),
            status: status.filter(|it| (400..600).contains(it)),
            message: member("message").or(error.as_str()).map(str::to_owned),
            retry_after: retry_after::from_error(error),
        }
    }

    /// Parses the body of an error response.
    fn of_body(body: &str) -> Self {
        let mut value: Value = serde_json::from_str(body).unwrap_or_default();
        // Some vendors send a list.
        if let Some(first) = value.get_mut(0) {
            value = first.take();
        }
        let error = ["error", "detail"].into_iter().find_map(|it| value.get(it));
        let mut parsed = Self::of(error.unwrap_or(&value));
        if parsed.message.is_none() && !body.trim().is_empty() {
            parsed.message = Some(body.trim().to_owned());
        }
        parsed
    }

    /// Classifies the error. Its message keeps its length, because redaction needs whole secrets.
    pub(crate) fn error(self, status: Option<u16>) -> VendorError {
        let message = self.message.as_deref().unwrap_or_default();
        let fault = fault(status.or(self.status), &self.names, message);
        let is_temporary = matches!(fault, VendorFault::RateLimit | VendorFault::Overloaded);
        let from_message = || {
            is_temporary
                .then(|| retry_after::from_message(message))
                .flatten()
        };
        let retry_after = self.retry_after.or_else(from_message);
        VendorError {
            fault,
            status,
            message: match (message, self.names.first()) {
                ("", None) => "it gave no reason".to_owned(),
                ("", Some(name)) => name.clone(),
                (message, _) => message.to_owned(),
            },
            retry_after,
        }
    }
}

/// Truncates a vendor's message. It comes last, because redaction does not find half a secret.
pub(crate) fn truncate(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
        message.truncate(end);
    }
}

/// Returns the error of an unsuccessful response.
pub(crate) fn error_response(
    status: u16,
    headers: &HeaderMap,
    body: &str,
    now: SystemTime,
) -> CallError {
    let mut error = VendorMessage::of_body(body).error(Some(status));
    error.retry_after = retry_after::from_headers(headers, now).or(error.retry_after);
    truncate(&mut error.message);
    CallError::Vendor(Box::new(error))
}

/// Returns the error of an answer that ended early, with the vendor's reason.
pub(crate) fn incomplete_answer(fault: VendorFault, reason: &str) -> CallError {
    CallError::Vendor(Box::new(VendorError {
        fault,
        status: None,
        message: format!("the model's answer is not complete: {reason}"),
        retry_after: None,
    }))
}

/// Parts of the names that vendors give their errors. The first match wins.
const NAMES: &[(VendorFault, &[&str])] = &[
    (
        VendorFault::ContextFull,
        &[
            "context_length",
            "context_window",
            "context_size",
            "request_too_large",
        ],
    ),
    (
        VendorFault::Quota,
        &[
            "quota",
            "usage_limit",
            "usage_not_included",
            "billing",
            "perday",
        ],
    ),
    (
        VendorFault::RateLimit,
        &["rate_limit", "too_many_requests", "resource_exhausted"],
    ),
    (
        VendorFault::Overloaded,
        &["overloaded", "slow_down", "unavailable"],
    ),
    (
        VendorFault::Unauthorized,
        &["api_key", "authentication", "permission"],
    ),
    (VendorFault::NotFound, &["not_found"]),
    (
        VendorFault::Policy,
        &["content_filter", "policy", "safety", "invalid_prompt"],
    ),
    (VendorFault::CutShort, &["max_output_tokens", "max_tokens"]),
    (VendorFault::Internal, &["server_error", "internal_error"]),
];

/// Phrases of messages, for vendors whose statuses mean many things. The first match wins.
const WORDS: &[(VendorFault, &[u16], &[&str])] = &[
    (
        VendorFault::ContextFull,
        &[400, 413, 422, 429],
        &[
            "context length",
            "context window",
            "context size",
            "context limit",
            "prompt is too long",
            "exceeds the maximum number of tokens",
            // More than the account may send in a minute: no retry succeeds, however long the
            // delay.
            "request too large",
        ],
    ),
    (VendorFault::Quota, &[400, 403], &["credit balance"]),
    (
        VendorFault::Unauthorized,
        &[400],
        &["incorrect api key", "api key not valid", "invalid api key"],
    ),
    (VendorFault::Policy, &[403], &["moderation", "flagged"]),
];

fn fault(status: Option<u16>, names: &[String], message: &str) -> VendorFault {
    let message = message.to_lowercase();
    let matches_message = |(_, statuses, words): &&(VendorFault, &[u16], &[&str])| {
        let matches_status = status.is_none_or(|it| statuses.contains(&it));
        matches_status && words.iter().any(|it| message.contains(it))
    };
    if let Some((fault, ..)) = WORDS.iter().find(matches_message) {
        return *fault;
    }
    let matches_name = |parts: &&[&str]| {
        let mut parts = parts.iter();
        parts.any(|part| names.iter().any(|name| name.contains(part)))
    };
    if let Some((fault, _)) = NAMES.iter().find(|(_, parts)| matches_name(parts)) {
        return *fault;
    }
    match status {
        None if matches_name(&&["invalid"][..]) => VendorFault::BadRequest,
        None => VendorFault::Internal,
        Some(401 | 403) => VendorFault::Unauthorized,
        Some(402) => VendorFault::Quota,
        Some(404) => VendorFault::NotFound,
        Some(429) => VendorFault::RateLimit,
        Some(503 | 529) => VendorFault::Overloaded,
        Some(408 | 409 | 500..=599) => VendorFault::Internal,
        Some(400..=499) => VendorFault::BadRequest,
        Some(_) => VendorFault::Other,
    }
}
