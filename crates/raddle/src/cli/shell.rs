//! The command line of `raddle completions` and `raddle man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder to write to; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
