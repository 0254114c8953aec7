//! A rule: what it is about, and what it says.

use std::fmt;

use super::command::{self, RuleMatch};
use super::pattern::name_fits;
use super::{HostPattern, ParsedScript, PathPattern, Verdict};

/// What someone wrote down about acts to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Who wrote it.
    pub layer: Layer,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub verdict: Verdict,
    /// Whether it allows also what goes beyond the sandbox. Only a rule that allows may say so.
    pub beyond: bool,
    /// Why, for people and for the model.
    pub reason: Option<String>,
}

/// Who wrote a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Whoever runs the machine.
    Managed,
    /// The user.
    User,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Commands that begin with these words.
    Command(Vec<String>),
    /// Files that are made, changed, moved or removed.
    Write(PathPattern),
    /// Files and folders that are read.
    Read(PathPattern),
    /// Hosts that are reached.
    Host(HostPattern),
    /// Tools of someone else's, by their names with `*` and `?`.
    Tool(String),
}

impl Rule {
    /// How surely the rule, if it restrains, is about one of a script's commands.
    pub(super) fn restrains(&self, script: &ParsedScript) -> RuleMatch {
        let Subject::Command(words) = &self.subject else {
            return RuleMatch::No;
        };
        let fits = script.commands.iter();
        fits.map(|it| command::restrained(words, it))
            .max()
            .unwrap_or(RuleMatch::No)
    }

    /// Whether the rule, if it allows, is about this command.
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

/// The rule's own words, by which a ruling names it.
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
