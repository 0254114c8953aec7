//! A program to start.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program to start. The environment is whole: nothing is inherited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program; without a slash it is looked for in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
}
