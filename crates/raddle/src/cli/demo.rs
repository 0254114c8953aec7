//! The command line of `raddle demo`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Ask nothing: approve the change
    #[arg(long)]
    pub(crate) yes: bool,
}
