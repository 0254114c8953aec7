//! What is to be started.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its path, or a name that is looked for in the `PATH` of `env`.
    pub program: OsString,
    /// What follows its name.
    pub args: Vec<OsString>,
    /// The folder it starts in; absolute.
    pub cwd: PathBuf,
    /// Its whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
}
