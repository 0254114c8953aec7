//! Failures, their kinds and their remedies.

use serde::{Deserialize, Serialize};

use super::Spending;
use crate::Timestamp;

/// A failure, as text and as a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Message for the user, in a sentence.
    pub message: String,
    /// Kind of failure, for programs.
    pub kind: FailureKind,
    /// Details, such as the vendor's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Time of the next retry, if the vendor gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Budget that is spent, if it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Spending>,
}

impl Failure {
    /// Creates a failure without details.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
            details: None,
            retry_at: None,
            budget: None,
        }
    }
}

/// Kind of a failure, which determines its class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FailureKind {
    /// The history exceeds the model's context window.
    ContextFull,
    /// A budget is spent.
    BudgetSpent,
    /// The account's quota is used up.
    UsageLimit,
    /// Too many calls in a short time.
    RateLimit,
    /// The vendor is overloaded.
    Overloaded,
    /// The vendor does not know the model.
    ModelNotFound,
    /// The vendor had an internal error.
    VendorFailed,
    /// The vendor rejected the credentials.
    Unauthorized,
    /// The vendor rejected the request as malformed.
    BadRequest,
    /// The vendor's policy rejected it.
    Policy,
    /// No connection to the vendor, or it broke.
    Connection {
        /// HTTP status, if one was received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The answer broke off before its end.
    Stream {
        /// HTTP status, if one was received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The peer could not prove that it is the vendor.
    Untrusted,
    /// The answer is not a valid model answer, or took too long.
    Unreadable,
    /// The answer reached its limit of tokens.
    CutShort,
    /// All attempts are used up.
    TooManyAttempts,
    /// The sandbox could not be set up.
    Sandbox,
    /// Owners died too often in one turn.
    RecoveryLimit,
    /// The journal has no space left.
    StorageFull,
    /// A bug in Raddle.
    Internal,
    /// A failure of any other kind.
    Other,
}

/// Remedy for a failure. It is computed from the kind and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// It may pass by itself.
    Transient,
    /// Too many calls: it passes at the time that the vendor gives, or soon.
    RateLimited,
    /// A quota or budget is used up: the user must pay, raise it, or wait for long.
    Quota,
    /// Credentials or certificates are wrong: the user must fix them.
    Auth,
    /// A policy rejected it.
    Policy,
    /// The history must become shorter.
    ContextOverflow,
    /// The same request will be rejected again.
    BadRequest,
    /// The vendor is unreachable or overloaded.
    Unavailable,
    /// Any other: a bug of ours, or a response that cannot be understood.
    Internal,
}

impl ErrorClass {
    /// Whether a retry of the same call may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Transient | Self::RateLimited | Self::Unavailable
        )
    }
}

impl FailureKind {
    /// Whether another vendor may succeed. A request that was rejected for its content is not
    /// offered to one vendor after the other.
    pub fn may_fall_back(&self) -> bool {
        match self.class() {
            ErrorClass::Transient
            | ErrorClass::RateLimited
            | ErrorClass::Quota
            | ErrorClass::Auth
            | ErrorClass::Unavailable => *self != Self::BudgetSpent,
            ErrorClass::Internal => *self == Self::Unreadable,
            ErrorClass::Policy | ErrorClass::ContextOverflow | ErrorClass::BadRequest => false,
        }
    }

    /// Returns the class that determines the remedy.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::VendorFailed | Self::Stream { .. } | Self::TooManyAttempts => {
                ErrorClass::Transient
            }
            Self::RateLimit => ErrorClass::RateLimited,
            Self::UsageLimit | Self::BudgetSpent => ErrorClass::Quota,
            Self::Unauthorized | Self::Untrusted => ErrorClass::Auth,
            Self::Policy => ErrorClass::Policy,
            Self::ContextFull => ErrorClass::ContextOverflow,
            Self::BadRequest | Self::ModelNotFound => ErrorClass::BadRequest,
            Self::Overloaded | Self::Connection { .. } => ErrorClass::Unavailable,
            Self::Unreadable
            | Self::CutShort
            | Self::Sandbox
            | Self::RecoveryLimit
            | Self::StorageFull
            | Self::Internal
            | Self::Other => ErrorClass::Internal,
        }
    }
}
