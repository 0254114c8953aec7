//! Errors of a call.

use std::time::Duration;

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The connection could not be established, or broke before an answer began.
    #[error(
        "cannot reach the model at {address}: {what}{}",
        connect_advice(address, what)
    )]
    Connect {
        /// The address of the model.
        address: String,
        /// The error of the system.
        what: String,
    },
    /// The peer did not prove that it is the vendor.
    #[error("the server at {address} is not trusted: {what}")]
    Untrusted {
        /// The address of the model.
        address: String,
        /// The problem, and what to do.
        what: String,
    },
    /// The connection broke in the middle of the answer.
    #[error("the model's answer broke off: {0}")]
    BrokeOff(String),
    /// No meaningful event arrived within the idle timeout.
    #[error("the model sent nothing for {} ms; if it may think for longer, raise stream_idle_timeout_ms", limit.as_millis())]
    Silent {
        /// The idle timeout that expired.
        limit: Duration,
    },
    /// The answer exceeded the total timeout.
    #[error("the model's answer was not complete after {} ms; if it may take longer, raise total_timeout_ms", limit.as_millis())]
    TooLong {
        /// The total timeout that expired.
        limit: Duration,
    },
    /// The answer does not follow the wire format.
    #[error("the model's answer cannot be read: {0}")]
    Malformed(String),
    /// The vendor returned an error.
    #[error(transparent)]
    Vendor(Box<VendorError>),
}

/// Error that a vendor returned in place of an answer, or in the middle of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", in_words(*status), key_advice(*status))]
pub struct VendorError {
    /// The kind of the error.
    pub fault: VendorFault,
    /// The HTTP status, if the error came in place of an answer.
    pub status: Option<u16>,
    /// The vendor's message, truncated.
    pub message: String,
    /// The delay that the vendor asks for before a retry.
    pub retry_after: Option<Duration>,
}

/// Kinds of a vendor's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorFault {
    /// Too many calls in too short a time.
    RateLimit,
    /// The account's quota is used up.
    Quota,
    /// The vendor is overloaded.
    Overloaded,
    /// The vendor failed internally.
    Internal,
    /// The vendor rejected the credentials.
    Unauthorized,
    /// The vendor does not know the model, or the address.
    NotFound,
    /// The history does not fit the model's context.
    ContextFull,
    /// The vendor rejected the request as malformed.
    BadRequest,
    /// The vendor's policy stopped the answer.
    Policy,
    /// The answer reached its token limit.
    CutShort,
    /// An error of none of these kinds.
    Other,
}

impl CallError {
    /// Returns whether a retry of the same call may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::BrokeOff(_) | Self::Silent { .. } => true,
            Self::TooLong { .. } | Self::Malformed(_) | Self::Untrusted { .. } => false,
            Self::Vendor(error) => matches!(
                error.fault,
                VendorFault::RateLimit | VendorFault::Overloaded | VendorFault::Internal
            ),
        }
    }

    /// Returns whether it failed before an answer began.
    pub fn is_before_answer(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Untrusted { .. } => true,
            Self::Vendor(error) => error.status.is_some(),
            _ => false,
        }
    }

    /// Returns the delay that the vendor asks for before a retry, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Vendor(error) => error.retry_after,
            _ => None,
        }
    }
}

/// Returns what to do about an address of this machine on which no server listens. Elsewhere, the
/// user can seldom start one.
fn connect_advice(address: &str, what: &str) -> &'static str {
    let host = address.split_once("://").map_or("", |(_, rest)| rest);
    let is_local = ["127.", "localhost:", "::1:"]
        .iter()
        .any(|it| host.starts_with(it));
    match is_local && what.starts_with("Connection refused") {
        true => "; start the server there, or correct base_url",
        false => "",
    }
}

/// Returns what to do about a rejected key.
fn key_advice(status: Option<u16>) -> &'static str {
    match status {
        Some(401) => " (check the key; `raddle doctor` names its source)",
        _ => "",
    }
}

fn in_words(status: Option<u16>) -> String {
    status.map_or_else(String::new, |it| {
        format!("the model's vendor answered {it}: ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_this_machine_are_to_be_started() {
        for (address, what, expected) in [
            (
                "http://127.0.0.1:9/v1",
                "Connection refused (os error 111)",
                true,
            ),
            (
                "http://localhost:9/v1",
                "Connection refused (os error 111)",
                true,
            ),
            ("http://::1:9/v1", "Connection refused (os error 111)", true),
            ("http://127.0.0.1:9/v1", "Network is unreachable", false),
            (
                "https://example.org:443/v1",
                "Connection refused (os error 111)",
                false,
            ),
        ] {
            let error = CallError::Connect {
                address: address.to_owned(),
                what: what.to_owned(),
            };
            let text = error.to_string();
            assert_eq!(text.contains("start the server there"), expected, "{text}");
        }
    }
}
