//! What the agent may do: every act is judged before it happens.
//!
//! A tool says what it would do, as an [`Act`]. A [`Policy`] says of it [`Verdict::Allow`], [`Verdict::Ask`]
//! or [`Verdict::Deny`], and by which rule. No verdict widens the fence: an act that goes beyond it is
//! allowed only by someone's yes to exactly this act, or by a rule that says so in as many words.

mod amendment;
mod clients;
mod command;
mod harmless;
mod judge;
mod managed_limits;
mod options;
mod pattern;
mod rights;
mod rule;
mod shells;
mod unattended;
mod wrapper;

pub use amendment::{Amendment, AmendmentError, proposed};
pub use managed_limits::{ApprovalKind, ManagedLimits, SandboxKind};
pub use pattern::{HostPattern, PathPattern, PatternError};
pub use rule::{Layer, Rule, Subject};
pub use shells::{ShellInvocation, is_passed_on, is_shell, shell_invocation, shell_script};
pub use unattended::{DeadlineAction, UnattendedPolicy};
pub use wrapper::{WrappedCommand, wrapped_command};

use serde::{Deserialize, Serialize};

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
        script: ParsedScript,
        /// Where, absolute.
        cwd: String,
        /// Whether outside the fence.
        beyond: bool,
    },
    /// Files are made, changed, moved or removed.
    Write {
        /// Which, absolute and without `..`.
        paths: Vec<String>,
        /// The files whose content is changed in part, or moves: rules about reading are about them too.
        reads: Vec<String>,
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
    /// A tool is called that a client runs, or one of ours whatever it does: only rules about tools by their names
    /// are about this.
    Tool {
        /// Its name, with that of its group and a dot before it.
        name: String,
    },
}

/// Stands in a word of a [`Script`] for what is not known before it runs. No word of a command can hold it.
pub const UNKNOWN: char = '\0';

/// A command line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedScript {
    /// The line as a person reads it.
    pub line: String,
    /// Every simple command in it, in the order in which they stand, as words without quotes. A word that
    /// holds [`UNKNOWN`] is not known before it runs, and a command that begins with one could be any.
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
    /// What decided: `approvalPolicy`, `sandbox`, `session`, `managed`, or the rule's own words, such as
    /// `command git push`.
    pub rule: String,
    /// What exactly it is about: the act's digest.
    pub digest: String,
    /// If files would change, and someone is asked: what a yes for the session is good for, which is each of these
    /// files in this sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// The rules that hold for all threads of a process: what the operator and the user wrote down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// All rules. Their order does not matter: the strictest that is about an act decides.
    pub rules: Vec<Rule>,
    /// What the operator holds fast.
    pub managed: ManagedLimits,
    /// What the user wants to happen where nobody answers.
    pub unattended: Option<UnattendedPolicy>,
}

impl Policy {
    /// The same without the user's leave to go beyond the sandbox.
    #[must_use]
    pub fn without_escalation(&self) -> Self {
        let mut policy = self.clone();
        let users = policy.rules.iter_mut().filter(|it| it.layer == Layer::User);
        users.for_each(|it| it.beyond = false);
        policy
    }

    /// What happens where nobody answers. What the operator says goes before what the user says.
    pub fn unattended(&self) -> UnattendedPolicy {
        let pinned = self.managed.unattended.clone();
        pinned
            .or_else(|| self.unattended.clone())
            .unwrap_or_default()
    }
}
