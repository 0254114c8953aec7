//! The command line of `raddle config`.

use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the values that count
    List(ConfigList),
    /// Print what a key says; the exit status is 1 if nobody says it
    Get(ConfigGet),
    /// Write a value to your config.toml, where comments and order stay
    ///
    /// The value is read as TOML; what is not TOML is a plain string. A running server takes it up by itself.
    Set(ConfigSet),
    /// Take a key out of your config.toml
    Unset(ConfigUnset),
    /// Print where your config.toml is, or would be
    Path(ConfigPath),
    /// Print the JSON Schema with which editors complete config.toml
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigList {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Say of each value where it comes from: a file, -c, or a variable
    #[arg(long)]
    pub(crate) origin: bool,

    /// Print one JSON object with `values` and `warnings`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigGet {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// The key, like model or model_providers.mine.base_url
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigSet {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// The key, like model or model_providers.mine.base_url
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// What it says from now on
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigUnset {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigPath {
    /// Print the administrator's file instead
    #[arg(long)]
    pub(crate) system: bool,
}
