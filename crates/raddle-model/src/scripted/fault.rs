//! The ways in which an answer goes wrong.

use serde_json::{Value, json};

/// A way in which an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Stall,
    Cut,
    Garbage,
    KeepAlive,
    Reset,
    RateLimit,
    Internal,
    Overloaded,
    ContentType,
    Empty,
    Context,
    Refused,
    Mute,
    HangUp,
    Unauthorized,
    Quota,
    Incomplete,
    Filtered,
}

/// What a fault is, when the vendor says it in so many words.
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: &'static str,
}

const NAMES: &[(Fault, &str)] = &[
    (Fault::Stall, "stall"),
    (Fault::Cut, "cut"),
    (Fault::Garbage, "garbage"),
    (Fault::KeepAlive, "keep-alive"),
    (Fault::Reset, "reset"),
    (Fault::RateLimit, "429"),
    (Fault::Internal, "500"),
    (Fault::Overloaded, "529"),
    (Fault::ContentType, "content-type"),
    (Fault::Empty, "empty"),
    (Fault::Context, "context"),
    (Fault::Refused, "refused"),
    (Fault::Mute, "mute"),
    (Fault::HangUp, "hang-up"),
    (Fault::Unauthorized, "unauthorized"),
    (Fault::Quota, "quota"),
    (Fault::Incomplete, "incomplete"),
    (Fault::Filtered, "filtered"),
];

impl Fault {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(fault, _)| *fault)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(_, it)| *it == name);
        found.map(|(fault, _)| *fault)
    }

    pub(super) fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(it, _)| *it == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether it can only come in place of an answer, not in the middle of one.
    pub(super) fn is_first(self) -> bool {
        matches!(
            self,
            Self::ContentType | Self::Empty | Self::Mute | Self::HangUp
        )
    }

    /// What the vendor says, if it says something.
    pub(super) fn said(self) -> Option<Said> {
        let (status, code, message) = match self {
            Self::RateLimit => (429, "rate_limit_exceeded", "Too many requests."),
            Self::Internal => (500, "server_error", "Something failed inside."),
            Self::Overloaded => (529, "overloaded_error", "Too much to do at the moment."),
            Self::Context => (
                400,
                "context_length_exceeded",
                "The input is longer than the context window of this model.",
            ),
            Self::Refused => (403, "permission_denied", "This is not allowed."),
            Self::Unauthorized => (401, "invalid_api_key", "The key is not known."),
            Self::Quota => (429, "insufficient_quota", "The allowance is used up."),
            _ => return None,
        };
        Some(Said {
            status,
            code,
            message,
        })
    }

    /// Why an answer is not complete, if it ends so.
    pub(super) fn incomplete_reason(self) -> Option<&'static str> {
        match self {
            Self::Incomplete => Some("max_output_tokens"),
            Self::Filtered => Some("content_filter"),
            _ => None,
        }
    }
}

impl Said {
    pub(super) fn error(&self) -> Value {
        json!({ "message": self.message, "type": self.code, "code": self.code, "param": null })
    }
}
