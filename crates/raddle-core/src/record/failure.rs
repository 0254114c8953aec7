//! What went wrong, and what may help.

use serde::{Deserialize, Serialize};

use super::Spending;
use crate::Timestamp;

/// What went wrong, in words and as a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// For the user, in a sentence.
    pub message: String,
    /// For programs.
    pub kind: FailureKind,
    /// More, such as what the vendor answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// When whoever refused wants to be asked again, if they said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The budget that is spent, if it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Spending>,
}

impl Failure {
    /// A failure of which nothing more is known.
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

/// Kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FailureKind {
    /// The history no longer fits the model.
    ContextFull,
    /// A budget is spent.
    BudgetSpent,
    /// The account's allowance is used up.
    UsageLimit,
    /// Too many calls in too short a time.
    RateLimit,
    /// The vendor has too much to do.
    Overloaded,
    /// The vendor does not know the model.
    ModelNotFound,
    /// The vendor failed inside.
    VendorFailed,
    /// The vendor did not take the credentials.
    Unauthorized,
    /// The vendor found the request malformed.
    BadRequest,
    /// The vendor's policy stopped it.
    Policy,
    /// No connection to the vendor, or it broke.
    Connection {
        /// The HTTP status, if one came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The answer broke off before its end.
    Stream {
        /// The HTTP status, if one came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// Whoever answered did not show that they are the vendor.
    Untrusted,
    /// The answer is not what a model's answer is, or took longer than it may.
    Unreadable,
    /// The answer reached the most tokens it may have.
    CutShort,
    /// It was tried as often as it may be.
    TooManyAttempts,
    /// The sandbox could not be set up.
    Sandbox,
    /// Owners died too often in one turn.
    RecoveryLimit,
    /// Nothing more can be stored.
    StorageFull,
    /// A fault of our own.
    Internal,
    /// None of the others.
    Other,
}

/// What may help against a failure. It is computed from the kind, and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// It may pass by itself.
    Transient,
    /// Too many calls: it passes when the vendor says so, or soon.
    RateLimited,
    /// What may be used is used up: someone must pay, allow more, or wait for long.
    Quota,
    /// Credentials or certificates: someone must mend them.
    Auth,
    /// Someone's policy says no.
    Policy,
    /// The history must become shorter.
    ContextOverflow,
    /// The same request will be refused again.
    BadRequest,
    /// Nobody is there, or they have too much to do.
    Unavailable,
    /// None of these: a fault of ours, or something that cannot be understood.
    Internal,
}

impl ErrorClass {
    /// Whether the same call may work if it is made again.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Transient | Self::RateLimited | Self::Unavailable
        )
    }
}

impl FailureKind {
    /// Whether another vendor may do better. What was refused for its own sake is not carried from one to
    /// the next until someone takes it.
    pub fn may_go_elsewhere(&self) -> bool {
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

    /// What may help.
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
