//! The policy: every act of the agent is judged before it happens.
//!
//! A tool describes what it would do as an [`Act`]. A [`Policy`] returns [`Verdict::Allow`],
//! [`Verdict::Ask`] or [`Verdict::Deny`], with the rule that decided. No verdict widens the
//! sandbox: an act beyond it needs an approval of exactly this act, or a rule that explicitly
//! allows it.

mod amendment;
pub mod approval_digest;
mod clients;
mod command;
pub mod command_variables;
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

/// An act that is about to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// Kind of the act.
    pub kind: ActKind,
    /// Digest of everything that identifies this act, from [`approval_digest`]. An approval holds
    /// for this digest only.
    pub digest: String,
    /// The agent's own reason for the act.
    pub reason: Option<String>,
}

/// Kind of an act, with its target.
#[derive(Clone, Debug, PartialEq)]
pub enum ActKind {
    /// A command line is run.
    Command {
        /// The command line, parsed.
        script: ParsedScript,
        /// Working directory, an absolute path.
        cwd: String,
        /// Whether it runs outside the sandbox.
        beyond: bool,
    },
    /// Files are created, changed, moved or removed.
    Write {
        /// The files, as absolute paths without `..`.
        paths: Vec<String>,
        /// Files that are changed in part or moved: rules about reading apply to them too.
        reads: Vec<String>,
        /// Whether one of them is outside the writable part of the sandbox.
        beyond: bool,
    },
    /// A file or folder is read.
    Read {
        /// Absolute path of the file or folder.
        path: String,
    },
    /// A connection to a host is opened.
    Connect {
        /// Name or address of the host.
        host: String,
    },
    /// A call of a client's tool, or of a built-in tool judged by its name alone. Only rules that
    /// name tools apply.
    Tool {
        /// Name of the tool, after that of its group and a dot.
        name: String,
    },
    /// A call of an MCP server's tool.
    McpTool {
        /// Name of the tool, after that of its server and a dot.
        name: String,
        /// Known facts about the risk of the call.
        risk: McpRisk,
    },
}

/// Known facts about the risk of a call of an MCP tool. The server's own declarations never decide
/// alone: rules and the approval policy come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpRisk {
    /// The operator approves every call of this tool.
    Approved,
    /// The operator wants to be asked about every call of this tool.
    Prompt,
    /// The server declares that the tool changes nothing, or only adds to a closed system.
    DeclaredHarmless,
    /// Nothing that would make it harmless is declared.
    Unknown,
}

/// Stands in a word of a [`ParsedScript`] for text that is unknown before it runs. No word of a
/// command can contain it.
pub const UNKNOWN: char = '\0';

/// A command line, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedScript {
    /// The line as the user reads it.
    pub line: String,
    /// Every simple command in it, in source order, as words without quotes. A word that contains
    /// [`UNKNOWN`] is not known before it runs. A command that begins with such a word is unknown:
    /// rules can restrict it but not allow it.
    pub commands: Vec<Vec<String>>,
    /// Whether these are surely all commands: the line has no substitution, redirection to a file,
    /// expansion or anything else but plain words.
    pub plain: bool,
}

/// The policy's decision on an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The act may happen.
    Allow,
    /// The user must approve the act.
    Ask,
    /// The act may not happen.
    Deny,
}

/// A verdict with its grounds, stored with the act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// Decision on the act.
    pub verdict: Verdict,
    /// Reason, for the user and for the model.
    pub reason: String,
    /// Source of the decision: `approvalPolicy`, `sandbox`, `session`, `managed`, or the rule's own
    /// text, such as `command git push`.
    pub rule: String,
    /// Digest of the act.
    pub digest: String,
    /// Scope of an approval for the session, if files would change and the verdict is to ask: each
    /// of these files in this sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Rules for all threads of a process, from the operator and the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// All rules. Their order does not matter: the strictest that applies to an act decides.
    pub rules: Vec<Rule>,
    /// Limits that the operator enforces.
    pub managed: ManagedLimits,
    /// The user's choice for requests that get no answer.
    pub unattended: Option<UnattendedPolicy>,
}

impl Policy {
    /// Returns the policy without the user's permission to go beyond the sandbox.
    #[must_use]
    pub fn without_escalation(&self) -> Self {
        let mut policy = self.clone();
        let users = policy.rules.iter_mut().filter(|it| it.layer == Layer::User);
        users.for_each(|it| it.beyond = false);
        policy
    }

    /// Returns the handling of requests that get no answer. The operator's choice overrides the
    /// user's.
    pub fn unattended(&self) -> UnattendedPolicy {
        let managed = self.managed.unattended.clone();
        managed
            .or_else(|| self.unattended.clone())
            .unwrap_or_default()
    }
}
