//! A program to start, with its arguments, folder and environment.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// Its complete environment: it inherits nothing.
    pub env: Vec<(OsString, OsString)>,
}
