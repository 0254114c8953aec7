//! Handling of requests that get no answer.

use super::{Ruling, Verdict, judge};

/// Handling of requests that get no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnattendedPolicy {
    /// Declined after this many milliseconds.
    Deny {
        /// Timeout of the request in milliseconds.
        after_ms: u64,
    },
    /// Approved after this many milliseconds if the act stays in the sandbox and no rule requires
    /// approval; else declined.
    Allow {
        /// Timeout of the request in milliseconds.
        after_ms: u64,
    },
    /// Waits until a client answers.
    #[default]
    Park,
    /// Sent to a webhook while no client is attached, and declined after this many milliseconds.
    Webhook {
        /// Timeout of the request in milliseconds.
        after_ms: u64,
        /// URL of the webhook: https, or http to this machine.
        url: String,
        /// Name of the environment variable that holds the bearer token.
        token_env: Option<String>,
    },
}

/// Handling of a request at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineAction {
    /// The request is approved.
    Accept,
    /// The request is declined.
    Decline,
    /// The request stays open.
    Wait,
}

impl UnattendedPolicy {
    /// Timeout in milliseconds; `None` if the request waits indefinitely.
    pub fn after_ms(&self) -> Option<u64> {
        match self {
            Self::Deny { after_ms } | Self::Allow { after_ms } | Self::Webhook { after_ms, .. } => {
                Some(*after_ms)
            }
            Self::Park => None,
        }
    }

    /// Returns the handling of a request at its deadline, for the ruling that led to it.
    pub fn at_deadline(&self, ruling: &Ruling) -> DeadlineAction {
        match self {
            // The only automatic approval: the act stays in the sandbox, and no rule requires the
            // user to see it.
            Self::Allow { .. }
                if ruling.verdict != Verdict::Deny && ruling.rule == judge::APPROVAL_POLICY =>
            {
                DeadlineAction::Accept
            }
            Self::Deny { .. } | Self::Allow { .. } | Self::Webhook { .. } => {
                DeadlineAction::Decline
            }
            Self::Park => DeadlineAction::Wait,
        }
    }

    /// Returns the stricter of two; of two of a kind, the one with the shorter timeout.
    pub fn stricter(self, other: Self) -> Self {
        let rank = |it: &Self| match it {
            Self::Deny { .. } => 0,
            Self::Park => 1,
            Self::Webhook { .. } => 2,
            Self::Allow { .. } => 3,
        };
        let key = |it: &Self| (rank(it), it.after_ms());
        if key(&other) < key(&self) {
            other
        } else {
            self
        }
    }
}
