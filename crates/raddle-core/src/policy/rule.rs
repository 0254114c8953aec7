//! Rules: a subject and a verdict.

use std::fmt;

use super::command::{self, RuleMatch};
use super::pattern::name_fits;
use super::{HostPattern, ParsedScript, PathPattern, Verdict};

/// A rule of the operator or the user about future acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Author of the rule.
    pub layer: Layer,
    /// Acts that the rule matches.
    pub subject: Subject,
    /// Verdict on these acts.
    pub verdict: Verdict,
    /// Whether it also allows acts beyond the sandbox. Only an allowing rule may set this.
    pub beyond: bool,
    /// Reason, for the user and for the model.
    pub reason: Option<String>,
}

/// Author of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Written by the operator.
    Managed,
    /// Written by the user.
    User,
}

/// Acts that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Commands that begin with these words.
    Command(Vec<String>),
    /// Files that are created, changed, moved or removed.
    Write(PathPattern),
    /// Files and folders that are read.
    Read(PathPattern),
    /// Hosts that are connected to.
    Host(HostPattern),
    /// Tools, by names with `*` and `?`.
    Tool(String),
}

impl Rule {
    /// How surely this restraining rule matches one of a script's commands.
    pub(super) fn restrains(&self, script: &ParsedScript) -> RuleMatch {
        let Subject::Command(words) = &self.subject else {
            return RuleMatch::No;
        };
        let fits = script.commands.iter();
        fits.map(|it| command::restrained(words, it))
            .max()
            .unwrap_or(RuleMatch::No)
    }

    /// Whether this allowing rule matches this command.
    pub(super) fn allows(&self, words: &[String]) -> bool {
        match &self.subject {
            Subject::Command(leading) => command::allowed(leading, words),
            _ => false,
        }
    }

    pub(super) fn is_about_write(&self, path: &str) -> bool {
        matches!(&self.subject, Subject::Write(pattern) if pattern.fits(path))
    }

    pub(super) fn is_about_read(&self, path: &str) -> bool {
        matches!(&self.subject, Subject::Read(pattern) if pattern.fits(path))
    }

    pub(super) fn is_about_host(&self, host: &str) -> bool {
        matches!(&self.subject, Subject::Host(pattern) if pattern.fits(host))
    }

    pub(super) fn is_about_tool(&self, name: &str) -> bool {
        matches!(&self.subject, Subject::Tool(pattern) if name_fits(pattern, name))
    }
}

/// Shows the rule as a ruling names it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Command(words) => write!(f, "command {}", words.join(" ")),
            Subject::Write(pattern) => write!(f, "write {pattern}"),
            Subject::Read(pattern) => write!(f, "read {pattern}"),
            Subject::Host(pattern) => write!(f, "host {pattern}"),
            Subject::Tool(pattern) => write!(f, "tool {pattern}"),
        }
    }
}
