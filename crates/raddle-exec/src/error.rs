//! Errors of a run, and of its arguments.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use super::schema::SchemaError;

/// Reason why a turn could not be run, or its answer could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime cannot be started.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// The answer cannot be printed.
    #[error(transparent)]
    Stdout(io::Error),
    /// The answer cannot be written to the file.
    #[error("cannot write the answer to {}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Invalid arguments.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("give a prompt, or - to read it from stdin")]
    NoPrompt,
    #[error("the prompt is empty; describe the task for the agent")]
    EmptyPrompt,
    #[error("cannot read the prompt from stdin")]
    Stdin(#[source] io::Error),
    #[error(
        "the prompt on stdin is no UTF-8: there is a wrong byte after the first {valid_bytes}; \
         convert it first, as with `iconv -f ENCODING -t UTF-8`"
    )]
    NotUtf8 { valid_bytes: usize },
    #[error(
        "--unattended ask needs a terminal on stdin and stderr, and no --json; use deny or rules"
    )]
    NoTerminal,
    /// A path of the arguments cannot be used.
    #[error("{purpose} {}; name another path, or correct that one", .path.display())]
    Path {
        /// The step that failed, such as `cannot read --image`.
        purpose: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is no JSON Schema; correct it, or name another file", .path.display())]
    Schema { path: PathBuf, source: SchemaError },
    #[error("{key} cannot be {value}; use {}", .known.join(", "))]
    UnknownValue {
        key: &'static str,
        value: String,
        known: Vec<&'static str>,
    },
    #[error(
        "--model {model} names a provider and no model; write PROVIDER/MODEL, \
         `raddle model list --provider NAME` lists what one has"
    )]
    NoModelName { model: String },
    #[error("{one} and {other} contradict each other; leave one of them out")]
    Contradiction {
        one: &'static str,
        other: &'static str,
    },
    #[error("{setting} is for a server of our own; leave it or --remote out")]
    OwnServerOnly { setting: &'static str },
    #[error("cannot find out which program this is")]
    OwnProgram(#[source] io::Error),
}

impl UsageError {
    pub(crate) fn path(purpose: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Path {
            purpose,
            path,
            source,
        }
    }
}

/// Returns the text of an error and its sources.
pub(crate) fn full_text(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
