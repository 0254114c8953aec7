//! Errors of reading and writing the configuration's files.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file is not TOML. The line itself is not shown: it may contain a key.
    #[error("{} is not valid TOML: line {line}: {what}", path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Message of the parser.
        what: String,
    },
    /// The file exists but cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

impl ConfigError {
    /// Returns the file that cannot be used.
    pub fn path(&self) -> &Path {
        match self {
            Self::Syntax { path, .. } | Self::Read { path, .. } => path,
        }
    }
}

/// Reason why a text names no key, or sets none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A setting without a value.
    #[error("`{0}` has no `=`; write key=value")]
    NoValue(String),
    /// The text of the key is invalid.
    #[error("`{key}`: {error}")]
    Path {
        /// The text.
        key: String,
        /// The error in it.
        error: KeyPathError,
    },
}

/// Reason why a text is not the path of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyPathError {
    /// It is empty.
    #[error("the key must not be empty")]
    Empty,
    /// It is not a key of TOML: the message of the parser.
    #[error("{0}")]
    Syntax(String),
}

/// Reason why the user's file was not written, or not read after the write.
#[derive(Debug, thiserror::Error)]
pub enum ConfigWriteError {
    /// A write that is not possible.
    #[error("{message}")]
    Rejected {
        /// The reason, for programs.
        kind: &'static str,
        /// The reason, for people.
        message: String,
    },
    /// The configuration with the new text cannot be used.
    #[error("{0}")]
    Unusable(ConfigError),
    /// An error of the file system.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for ConfigWriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
