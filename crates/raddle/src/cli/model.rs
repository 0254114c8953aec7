//! The command line of `raddle model`.

use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models of the configuration, and those that its providers have
    ///
    /// Each stands as `model` in the configuration and `-m` name it; one that a name alone cannot say, because all
    /// names belong to `model_provider`, with both options. Asks the configured providers, or those that --provider
    /// names, which may also be well-known ones. What cannot be asked is said on stderr, and the exit status is then 1.
    List(ModelList),
}

#[derive(Debug, Args)]
pub(crate) struct ModelList {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Ask this provider only; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Vec<String>,

    /// Ask nobody: list what the configuration names
    #[arg(long, conflicts_with = "provider")]
    pub(crate) offline: bool,

    /// Print one JSON object with `data`, which has each model's provider and name there too
    #[arg(long)]
    pub(crate) json: bool,
}
