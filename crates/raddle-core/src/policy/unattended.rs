//! What becomes of a question that nobody answers.

use super::{Ruling, Verdict, judge};

/// What becomes of a question that nobody answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnattendedPolicy {
    /// After so many milliseconds it is a no.
    Deny {
        /// How long somebody may take.
        after_ms: u64,
    },
    /// After so many milliseconds it is a yes to what stays in the sandbox and what no rule asks about, and a
    /// no to everything else.
    Allow {
        /// How long somebody may take.
        after_ms: u64,
    },
    /// It waits until somebody answers.
    #[default]
    Park,
    /// It is put to an address while nobody is attached, and after so many milliseconds it is a no.
    Webhook {
        /// How long somebody may take.
        after_ms: u64,
        /// Where to: https, or http to this machine.
        url: String,
        /// Names the environment variable that holds what is said as a bearer token.
        token_env: Option<String>,
    },
}

/// What happens to a question at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineAction {
    /// It is answered with yes.
    Accept,
    /// It is answered with no.
    Decline,
    /// It waits on.
    Wait,
}

impl UnattendedPolicy {
    /// How long somebody may take; nothing if the question waits for ever.
    pub fn after_ms(&self) -> Option<u64> {
        match self {
            Self::Deny { after_ms } | Self::Allow { after_ms } | Self::Webhook { after_ms, .. } => {
                Some(*after_ms)
            }
            Self::Park => None,
        }
    }

    /// What happens at the deadline to a question that this ruling led to.
    pub fn at_deadline(&self, ruling: &Ruling) -> DeadlineAction {
        match self {
            // The only yes that nobody gives: the fence holds, and nobody wrote down that they want to see it.
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

    /// The stricter of two; of two of a kind, the one that answers sooner.
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
