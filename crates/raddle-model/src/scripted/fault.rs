//! The ways in which an answer goes wrong.

use serde_json::{Value, json};

use crate::Wire;

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
    fault: Fault,
    pub(super) status: u16,
    code: &'static str,
    pub(super) message: &'static str,
}

/// Why an answer ends before it is whole.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// It has the most tokens it may have.
    Length,
    /// The vendor's filter stopped it.
    Filter,
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
            fault: self,
            status,
            code,
            message,
        })
    }

    /// Why an answer is not complete, if it ends so.
    pub(super) fn stop(self) -> Option<Stop> {
        match self {
            Self::Incomplete => Some(Stop::Length),
            Self::Filtered => Some(Stop::Filter),
            _ => None,
        }
    }
}

impl Said {
    /// The error, in a wire's words.
    pub(super) fn error(&self, wire: Wire, message: &str) -> Value {
        match wire {
            Wire::Responses | Wire::Chat => {
                json!({ "message": message, "type": self.code, "code": self.code, "param": null })
            }
            Wire::Messages => json!({ "type": self.kind(), "message": message }),
            Wire::Gemini => {
                // That it is used up for the day is said only in the details.
                let violations = json!([{ "violations": [{ "quotaId": "RequestsPerDay" }] }]);
                let is_quota = self.fault == Fault::Quota;
                let details = if is_quota { violations } else { json!([]) };
                json!({ "code": self.status, "message": message, "status": self.state(), "details": details })
            }
        }
    }

    /// What is said in place of an answer.
    pub(super) fn body(&self, wire: Wire) -> Value {
        let error = self.error(wire, self.message);
        match wire {
            Wire::Messages => json!({ "type": "error", "error": error }),
            _ => json!({ "error": error }),
        }
    }

    /// The name on the wire of Messages.
    fn kind(&self) -> &'static str {
        match self.fault {
            Fault::RateLimit => "rate_limit_error",
            Fault::Overloaded => "overloaded_error",
            Fault::Context => "invalid_request_error",
            Fault::Refused => "permission_error",
            Fault::Unauthorized => "authentication_error",
            Fault::Quota => "billing_error",
            _ => "api_error",
        }
    }

    /// The name on the wire of Gemini.
    fn state(&self) -> &'static str {
        match self.fault {
            Fault::RateLimit | Fault::Quota => "RESOURCE_EXHAUSTED",
            Fault::Overloaded => "UNAVAILABLE",
            Fault::Context => "INVALID_ARGUMENT",
            Fault::Refused => "PERMISSION_DENIED",
            Fault::Unauthorized => "UNAUTHENTICATED",
            _ => "INTERNAL",
        }
    }
}
