//! What the agent may do: every act is judged before it happens.
//!
//! A tool says what it would do, as an [`Act`]. A [`Policy`] says of it [`Verdict::Allow`], [`Verdict::Ask`]
//! or [`Verdict::Deny`], and by which rule. No verdict widens the fence: an act that goes beyond it is
//! allowed only by someone's yes to exactly this act.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{ApprovalPolicy, Settings};

/// Something that is about to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// What.
    pub kind: ActKind,
    /// What exactly: a SHA-256 in hex over everything that makes this act this one and no other. A yes is
    /// good for this only.
    pub digest: String,
    /// Why the agent wants it, in its own words.
    pub why: Option<String>,
}

/// What is about to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum ActKind {
    /// A command runs.
    Command {
        /// What it is made of.
        script: Script,
        /// Where, absolute.
        cwd: String,
        /// Whether outside the fence.
        beyond: bool,
    },
    /// Files are made, changed, moved or removed.
    Write {
        /// Which, absolute and without `..`.
        paths: Vec<String>,
        /// Whether one of them is outside what the fence lets be written.
        beyond: bool,
    },
    /// A file or folder is read.
    Read {
        /// Which, absolute.
        path: String,
    },
    /// A host is reached.
    Connect {
        /// Which.
        host: String,
    },
    /// A tool of someone else's is called.
    Tool {
        /// Its name, with that of its group.
        name: String,
    },
}

/// A command line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The line as a person reads it.
    pub line: String,
    /// Every simple command in it, in the order in which they stand, as words without quotes.
    pub commands: Vec<Vec<String>>,
    /// Whether these are surely all there is: no substitution, redirection to a file, expansion or anything
    /// else that is not plain words.
    pub plain: bool,
}

/// What is said of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// Someone must say yes.
    Ask,
    /// It may not happen.
    Deny,
}

/// A verdict with its grounds. It is kept with the act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, for people and for the model.
    pub reason: String,
    /// The rule that decided, such as `approvalPolicy`, `session`, or the rule's own words.
    pub rule: String,
    /// What exactly it is about: the act's digest.
    pub digest: String,
}

/// The rules that hold for all threads of a process: what the operator and the user wrote down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {}

impl Policy {
    /// What is said of an act in a thread with these settings, in which these digests have a yes for the
    /// session.
    pub fn judge(&self, act: &Act, settings: &Settings, granted: &BTreeSet<String>) -> Ruling {
        let ruling = |verdict, reason: &str, rule: &str| Ruling {
            verdict,
            reason: reason.to_owned(),
            rule: rule.to_owned(),
            digest: act.digest.clone(),
        };
        if granted.contains(&act.digest) {
            return ruling(
                Verdict::Allow,
                "It was allowed for this session.",
                "session",
            );
        }
        let beyond = match act.kind {
            ActKind::Command { beyond, .. } | ActKind::Write { beyond, .. } => beyond,
            ActKind::Read { .. } | ActKind::Connect { .. } | ActKind::Tool { .. } => false,
        };
        match &settings.approval {
            ApprovalPolicy::Never if beyond => ruling(
                Verdict::Deny,
                "It goes beyond the sandbox, and nobody is asked here.",
                "approvalPolicy",
            ),
            ApprovalPolicy::Untrusted => ruling(
                Verdict::Ask,
                "It is not known to be harmless.",
                "approvalPolicy",
            ),
            _ if beyond => ruling(
                Verdict::Ask,
                "It goes beyond the sandbox.",
                "approvalPolicy",
            ),
            _ => ruling(Verdict::Allow, "It stays in the sandbox.", "approvalPolicy"),
        }
    }
}
