//! The command line of `raddle init`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Model, as PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Address of the provider, if it is not a well-known one
    #[arg(
        long,
        value_name = "URL",
        requires = "model",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) base_url: Option<String>,

    /// Environment variable with the key
    #[arg(
        long,
        value_name = "VARIABLE",
        conflicts_with = "key_file",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) key_env: Option<String>,

    /// File with the key, starting with / or ~/
    #[arg(long, value_name = "PATH")]
    pub(crate) key_file: Option<String>,

    /// Actions that the agent may take without asking
    #[arg(long, value_enum)]
    pub(crate) approval: Option<InitApproval>,

    /// Ask nothing: use the default where no option gives a value
    #[arg(long)]
    pub(crate) yes: bool,

    /// Replace an existing config.toml
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitApproval {
    /// Read files
    Read,
    /// Also change the workspace, and run commands inside the sandbox
    Workspace,
    /// Anything, without a sandbox; for machines made for it
    All,
}
