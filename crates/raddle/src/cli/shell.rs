//! The command line of `raddle completions` and `raddle man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Output folder; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
