//! What a vendor's own words for a failure mean.

mod retry_after;

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use serde_json::Value;

use crate::{CallError, VendorError, VendorFault};

/// How much is kept of what a vendor says.
const MESSAGE_LETTERS_MAX: usize = 2000;

/// A failure in a vendor's words.
#[derive(Debug, Default)]
pub(crate) struct VendorMessage {
    /// Names for it, in small letters: its code, its type.
    names: Vec<String>,
    /// Its code, if that is an HTTP status.
    status: Option<u16>,
    message: Option<String>,
    /// When it wants to be asked again.
    retry_after: Option<Duration>,
}

impl VendorMessage {
    /// Reads what vendors put where an error should be: an object, or only a text.
    pub(crate) fn of(error: &Value) -> Self {
        let member = |name: &str| error[name].as_str();
        let names = ["code", "type", "reason", "status"].into_iter();
        let status = error["code"].as_u64().and_then(|it| it.try_into().ok());
        let details = || error["details"].as_array().into_iter().flatten();
        let violations = details().filter_map(|it| it["violations"].as_array());
        let finer = details().filter_map(|it| it["reason"].as_str());
        let finer = finer.chain(violations.flatten().filter_map(|it| it["quotaId"].as_str()));
        Self {
            names: names
                .filter_map(member)
                .chain(finer)
                .map(str::to_lowercase)
                .collect(),
            status: status.filter(|it| (400..600).contains(it)),
            message: member("message").or(error.as_str()).map(str::to_owned),
            retry_after: retry_after::from_error(error),
        }
    }

    /// Reads the body of an answer that is an error.
    fn of_body(body: &str) -> Self {
        let mut value: Value = serde_json::from_str(body).unwrap_or_default();
        // Some put it into a list.
        if let Some(first) = value.get_mut(0) {
            value = first.take();
        }
        let found = ["error", "detail"].into_iter().find_map(|it| value.get(it));
        let mut words = Self::of(found.unwrap_or(&value));
        if words.message.is_none() && !body.trim().is_empty() {
            words.message = Some(body.trim().to_owned());
        }
        words
    }

    /// What they mean. Their message is as long as it came: what is to be hidden in it must be whole.
    pub(crate) fn error(self, status: Option<u16>) -> VendorError {
        let message = self.message.as_deref().unwrap_or_default();
        let fault = fault(status.or(self.status), &self.names, message);
        let may_pass = matches!(fault, VendorFault::RateLimit | VendorFault::Overloaded);
        let said = || {
            may_pass
                .then(|| retry_after::from_message(message))
                .flatten()
        };
        let retry_after = self.retry_after.or_else(said);
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

/// Cuts a vendor's message to what is kept of it. It goes last, because half a secret is not found.
pub(crate) fn cut(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_LETTERS_MAX) {
        message.truncate(end);
    }
}

/// What an answer that is no success means.
pub(crate) fn refused(status: u16, headers: &HeaderMap, body: &str, now: SystemTime) -> CallError {
    let mut error = VendorMessage::of_body(body).error(Some(status));
    error.retry_after = retry_after::from_headers(headers, now).or(error.retry_after);
    cut(&mut error.message);
    CallError::Vendor(Box::new(error))
}

/// An answer that ended before it was whole, for a reason that the vendor gave in a word.
pub(crate) fn stopped(fault: VendorFault, reason: &str) -> CallError {
    CallError::Vendor(Box::new(VendorError {
        fault,
        status: None,
        message: format!("the model's answer is not complete: {reason}"),
        retry_after: None,
    }))
}

/// Parts of the names that vendors have for their faults. The first that fits counts.
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

/// What some vendors say only in words, with statuses that mean many things. The first that fits counts.
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
            // More than the account may send in a minute: it never goes through, however long one waits.
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
    let is_said = |(_, statuses, words): &&(VendorFault, &[u16], &[&str])| {
        let fits = status.is_none_or(|it| statuses.contains(&it));
        fits && words.iter().any(|it| message.contains(it))
    };
    if let Some((fault, ..)) = WORDS.iter().find(is_said) {
        return *fault;
    }
    let is_named = |parts: &&[&str]| {
        let mut parts = parts.iter();
        parts.any(|part| names.iter().any(|name| name.contains(part)))
    };
    if let Some((fault, _)) = NAMES.iter().find(|(_, parts)| is_named(parts)) {
        return *fault;
    }
    match status {
        None if is_named(&&["invalid"][..]) => VendorFault::BadRequest,
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
