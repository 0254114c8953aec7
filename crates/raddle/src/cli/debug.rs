//! The command line of `raddle debug`.

use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Print the models as JSON, in the form of `codex debug models`
    ///
    /// Asks the configured providers, as `raddle model list` does. Reports failures on stderr; the
    /// exit status is 0 all the same.
    Models(DebugModels),
}

#[derive(Debug, Args)]
pub(crate) struct DebugModels {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Ask no provider: print the models of the configuration
    #[arg(long)]
    pub(crate) bundled: bool,
}
