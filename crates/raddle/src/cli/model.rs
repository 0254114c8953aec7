//! The command line of `raddle model`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models of the configuration and of its providers
    ///
    /// Prints each name as `model` in the configuration and `-m` take it, or with both options
    /// where all plain names belong to `model_provider`. Asks the configured providers, or those
    /// given with --provider, including well-known ones. Reports failures on stderr, with exit
    /// status 1.
    List(ModelList),
}

#[derive(Debug, Args)]
pub(crate) struct ModelList {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Ask only this provider; may be repeated
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Vec<String>,

    /// Ask no provider: list the models of the configuration
    #[arg(long, conflicts_with = "provider")]
    pub(crate) offline: bool,

    /// Print one JSON object with `data`, including each model's provider and its name there
    #[arg(long)]
    pub(crate) json: bool,
}
