//! The command line of `raddle init`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The model, as PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Where the provider is, if it is not a well-known one
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,

    /// The environment variable that holds the key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    pub(crate) key_env: Option<String>,

    /// The file that holds the key, from / or ~/ on
    #[arg(long, value_name = "PATH")]
    pub(crate) key_file: Option<String>,

    /// What the agent may do without asking
    #[arg(long, value_enum)]
    pub(crate) approval: Option<InitApproval>,

    /// Ask nothing: take the usual answer where no option says one
    #[arg(long)]
    pub(crate) yes: bool,

    /// Replace the config.toml that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitApproval {
    /// Read files
    Read,
    /// Also change the workspace, and run commands inside the fence
    Workspace,
    /// Anything, without a fence; for machines made for it
    All,
}
