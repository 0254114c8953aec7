//! Allowed differences from the reference, each with its reason. An unused entry is an error, so
//! the list cannot outlive its causes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Kind of an exception. The names are those of `exceptions.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A string that we read as a thread id: instances get a UUID there.
    ThreadId,
    /// A member that accepts any JSON here and has a type in the reference: instances get a value
    /// of that type.
    Opaque,
    /// A variant of the reference that allows anything; its values must become `Unrecognized`.
    OpenArm,
    /// A member that the reference does not have.
    ExtraMember,
    /// A member of the reference that we do not name.
    MissingMember,
    /// A value or variant that the reference does not have.
    ExtraValue,
    /// A value or variant of the reference that we do not name.
    MissingValue,
    /// A position where the two schemas expect different forms of value.
    OtherForm,
    /// A method that the reference does not have.
    ExtraMethod,
    /// A notification that the reference does not have.
    ExtraNotification,
    /// Params of the reference, which clients may omit, and which we do not read.
    MissingParams,
    /// A method or member that is stable on one side and experimental on the other.
    Gate,
}

impl Kind {
    /// Returns the name in `exceptions.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Self::ThreadId => "thread-id",
            Self::Opaque => "opaque",
            Self::OpenArm => "open-arm",
            Self::ExtraMember => "extra-member",
            Self::MissingMember => "missing-member",
            Self::ExtraValue => "extra-value",
            Self::MissingValue => "missing-value",
            Self::OtherForm => "other-form",
            Self::ExtraMethod => "extra-method",
            Self::ExtraNotification => "extra-notification",
            Self::MissingParams => "missing-params",
            Self::Gate => "gate",
        }
    }
}

#[derive(Debug)]
pub struct Exceptions {
    pub entries: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExceptionFile {
    exception: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub kind: Kind,
    /// Paths, such as `ThreadItem[plan].text`. For `thread-id` a bare member name stands for that
    /// member of every type.
    pub what: Vec<String>,
    pub reason: String,
    #[serde(skip)]
    used: Vec<AtomicBool>,
}

impl Exceptions {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub fn parse(text: &str) -> Result<Self> {
        let ExceptionFile {
            exception: mut entries,
        } = toml::from_str(text)?;
        for entry in &mut entries {
            ensure!(!entry.what.is_empty(), "an exception without `what`");
            ensure!(
                !entry.reason.trim().is_empty(),
                "an exception without a reason: {:?}",
                entry.what
            );
            entry.used = entry.what.iter().map(|_| AtomicBool::new(false)).collect();
        }
        Ok(Self { entries })
    }

    /// Returns the index of the entry that allows this difference, and marks it as used.
    pub fn find(&self, kind: Kind, path: &str) -> Option<usize> {
        for (index, entry) in self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.kind == kind)
        {
            for (what, used) in entry.what.iter().zip(&entry.used) {
                if matches_path(kind, what, path) {
                    used.store(true, Ordering::Relaxed);
                    return Some(index);
                }
            }
        }
        None
    }

    /// Returns the entries that were not used.
    pub fn unused(&self) -> Vec<String> {
        let mut unused = Vec::new();
        for entry in &self.entries {
            for (what, used) in entry.what.iter().zip(&entry.used) {
                if !used.load(Ordering::Relaxed) {
                    unused.push(format!("{} {what}", entry.kind.word()));
                }
            }
        }
        unused
    }
}

fn matches_path(kind: Kind, what: &str, path: &str) -> bool {
    if kind != Kind::ThreadId {
        return what == path;
    }
    let path = path.trim_end_matches("[]");
    let member = path.rsplit('.').next().unwrap_or(path);
    what == path || (member.len() < path.len() && what == member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[exception]]
        kind = "thread-id"
        what = ["threadId", "Thread.id"]
        reason = "ids are UUIDs"

        [[exception]]
        kind = "opaque"
        what = ["Item.body"]
        reason = "not read here"
    "#;

    #[test]
    fn an_entry_that_nothing_needs_is_named() {
        let exceptions = Exceptions::parse(TEXT).expect("good text");
        assert_eq!(exceptions.find(Kind::ThreadId, "Turn.threadId"), Some(0));
        assert_eq!(exceptions.find(Kind::Opaque, "Item.body"), Some(1));
        assert_eq!(exceptions.unused(), ["thread-id Thread.id"]);
    }

    #[test]
    fn paths_are_matched_exactly() {
        let exceptions = Exceptions::parse(TEXT).expect("good text");
        assert_eq!(exceptions.find(Kind::ThreadId, "Turn.id"), None);
        assert_eq!(exceptions.find(Kind::ThreadId, "Item.threadIds[]"), None);
        assert_eq!(exceptions.find(Kind::ThreadId, "Other.threadId[]"), Some(0));
        assert_eq!(exceptions.find(Kind::Opaque, "Item.bodyText"), None);
        assert_eq!(exceptions.find(Kind::Gate, "Item.body"), None);
    }

    #[test]
    fn a_reason_is_required() {
        let text = "[[exception]]\nkind = \"gate\"\nwhat = [\"x\"]\nreason = \" \"";
        let error = Exceptions::parse(text).expect_err("no reason given");
        assert!(error.to_string().contains("without a reason"));
    }
}
