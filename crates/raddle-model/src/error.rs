//! What can go wrong with a call.

use std::time::Duration;

/// What went wrong with a call, and what may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection came about, or it broke before an answer began.
    #[error("cannot reach the model at {address}: {what}")]
    Connect {
        /// Where it should be.
        address: String,
        /// What the system says.
        what: String,
    },
    /// Whoever is there did not show that it is the vendor.
    #[error("cannot trust what answers at {address}: {what}")]
    Untrusted {
        /// Where it should be.
        address: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The answer broke off.
    #[error("the model's answer broke off: {0}")]
    BrokeOff(String),
    /// Nothing that means anything came for too long.
    #[error("the model said nothing for {} ms; if it may think for longer, raise stream_idle_timeout_ms", limit.as_millis())]
    Silent {
        /// For how long it may be silent.
        limit: Duration,
    },
    /// The whole answer took too long.
    #[error("the model's answer was not complete after {} ms; if it may take longer, raise total_timeout_ms", limit.as_millis())]
    TooLong {
        /// How long it may take.
        limit: Duration,
    },
    /// The answer is not what this wire's answers are.
    #[error("the model's answer cannot be read: {0}")]
    Malformed(String),
    /// The vendor said no, or failed.
    #[error(transparent)]
    Vendor(Box<VendorError>),
}

/// What a vendor said in place of an answer, or in the middle of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", in_words(*status))]
pub struct VendorError {
    /// What it means.
    pub fault: VendorFault,
    /// The HTTP status, if it came in place of an answer.
    pub status: Option<u16>,
    /// What the vendor says, cut short.
    pub message: String,
    /// When the vendor wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// Kinds of a vendor's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorFault {
    /// Too many calls in too short a time.
    RateLimit,
    /// The account's allowance is used up.
    Quota,
    /// It has too much to do.
    Overloaded,
    /// It failed inside.
    Internal,
    /// It did not take the credentials.
    Unauthorized,
    /// It does not know the model, or the address.
    NotFound,
    /// The history does not fit the model.
    ContextFull,
    /// It found the request malformed.
    BadRequest,
    /// Its policy stopped the answer.
    Policy,
    /// The answer reached the most tokens it may have.
    CutShort,
    /// None of these.
    Other,
}

impl CallError {
    /// Whether the same call may work if it is made again.
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

    /// Whether it went wrong before an answer began.
    pub fn is_before_answer(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Untrusted { .. } => true,
            Self::Vendor(error) => error.status.is_some(),
            _ => false,
        }
    }

    /// When the vendor wants to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Vendor(error) => error.retry_after,
            _ => None,
        }
    }
}

fn in_words(status: Option<u16>) -> String {
    status.map_or_else(String::new, |it| {
        format!("the model's vendor answered {it}: ")
    })
}
