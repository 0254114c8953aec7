//! Faults of a scripted answer.

use serde_json::{Value, json};

use crate::WireFormat;

/// Fault of a scripted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptedFault {
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

/// The vendor's error response for a fault.
pub(super) struct FaultReply {
    fault: ScriptedFault,
    pub(super) status: u16,
    code: &'static str,
    pub(super) message: &'static str,
}

/// Reason why an answer ends before it is complete.
#[derive(Clone, Copy)]
pub(super) enum StopReason {
    /// It reached its token limit.
    Length,
    /// The vendor's filter stopped it.
    Filter,
}

const NAMES: &[(ScriptedFault, &str)] = &[
    (ScriptedFault::Stall, "stall"),
    (ScriptedFault::Cut, "cut"),
    (ScriptedFault::Garbage, "garbage"),
    (ScriptedFault::KeepAlive, "keep-alive"),
    (ScriptedFault::Reset, "reset"),
    (ScriptedFault::RateLimit, "429"),
    (ScriptedFault::Internal, "500"),
    (ScriptedFault::Overloaded, "529"),
    (ScriptedFault::ContentType, "content-type"),
    (ScriptedFault::Empty, "empty"),
    (ScriptedFault::Context, "context"),
    (ScriptedFault::Refused, "refused"),
    (ScriptedFault::Mute, "mute"),
    (ScriptedFault::HangUp, "hang-up"),
    (ScriptedFault::Unauthorized, "unauthorized"),
    (ScriptedFault::Quota, "quota"),
    (ScriptedFault::Incomplete, "incomplete"),
    (ScriptedFault::Filtered, "filtered"),
];

impl ScriptedFault {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(fault, _)| *fault)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let entry = NAMES.iter().find(|(_, it)| *it == name);
        entry.map(|(fault, _)| *fault)
    }

    pub(super) fn name(self) -> &'static str {
        let entry = NAMES.iter().find(|(it, _)| *it == self);
        entry.map_or("", |(_, name)| name)
    }

    /// Whether it can only replace an answer, not interrupt one.
    pub(super) fn is_first(self) -> bool {
        matches!(
            self,
            Self::ContentType | Self::Empty | Self::Mute | Self::HangUp
        )
    }

    /// Returns the vendor's error response, if the fault has one.
    pub(super) fn reply(self) -> Option<FaultReply> {
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
        Some(FaultReply {
            fault: self,
            status,
            code,
            message,
        })
    }

    /// Returns the reason of an incomplete answer, if the fault is one.
    pub(super) fn stop(self) -> Option<StopReason> {
        match self {
            Self::Incomplete => Some(StopReason::Length),
            Self::Filtered => Some(StopReason::Filter),
            _ => None,
        }
    }
}

impl FaultReply {
    /// Returns the error in the form of a wire.
    pub(super) fn error(&self, wire: WireFormat, message: &str) -> Value {
        match wire {
            WireFormat::Responses | WireFormat::Chat => {
                json!({ "message": message, "type": self.code, "code": self.code, "param": null })
            }
            WireFormat::Messages => json!({ "type": self.kind(), "message": message }),
            WireFormat::Gemini => {
                // Only the details show that the daily quota is used up.
                let violations = json!([{ "violations": [{ "quotaId": "RequestsPerDay" }] }]);
                let is_quota = self.fault == ScriptedFault::Quota;
                let details = if is_quota { violations } else { json!([]) };
                json!({ "code": self.status, "message": message, "status": self.state(), "details": details })
            }
        }
    }

    /// Returns the body of an error response.
    pub(super) fn body(&self, wire: WireFormat) -> Value {
        let error = self.error(wire, self.message);
        match wire {
            WireFormat::Messages => json!({ "type": "error", "error": error }),
            _ => json!({ "error": error }),
        }
    }

    /// Returns the error type on the wire of Messages.
    fn kind(&self) -> &'static str {
        match self.fault {
            ScriptedFault::RateLimit => "rate_limit_error",
            ScriptedFault::Overloaded => "overloaded_error",
            ScriptedFault::Context => "invalid_request_error",
            ScriptedFault::Refused => "permission_error",
            ScriptedFault::Unauthorized => "authentication_error",
            ScriptedFault::Quota => "billing_error",
            _ => "api_error",
        }
    }

    /// Returns the error status on the wire of Gemini.
    fn state(&self) -> &'static str {
        match self.fault {
            ScriptedFault::RateLimit | ScriptedFault::Quota => "RESOURCE_EXHAUSTED",
            ScriptedFault::Overloaded => "UNAVAILABLE",
            ScriptedFault::Context => "INVALID_ARGUMENT",
            ScriptedFault::Refused => "PERMISSION_DENIED",
            ScriptedFault::Unauthorized => "UNAUTHENTICATED",
            _ => "INTERNAL",
        }
    }
}
