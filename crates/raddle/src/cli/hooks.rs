//! The command line of `raddle hooks`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List the hooks and whether they run
    List(HooksList),
    /// Trust hooks in their current form
    ///
    /// A hook of the user runs once it is trusted. It stops running when its definition or a script
    /// that it names changes, until it is trusted again. Read what it does first. Servers that run
    /// already use the result.
    Trust(HooksTrust),
}

#[derive(Debug, Args)]
pub(crate) struct HooksList {
    /// Print one JSON object with `hooks`, `warnings` and `errors`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HooksTrust {
    /// Number or key of a hook, as `raddle hooks list` prints it
    #[arg(value_name = "HOOK", required_unless_present = "all")]
    pub(crate) hooks: Vec<String>,

    /// Trust all hooks
    #[arg(long, conflicts_with = "hooks")]
    pub(crate) all: bool,
}
