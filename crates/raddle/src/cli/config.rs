//! The command line of `raddle config`.

use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the effective values
    List(ConfigList),
    /// Print the value of a key; the exit status is 1 if it is not set
    Get(ConfigGet),
    /// Write a value to your config.toml, keeping comments and order
    ///
    /// The value is parsed as TOML; text that is not TOML becomes a string. A running server
    /// reloads it.
    Set(ConfigSet),
    /// Remove a key from your config.toml; the exit status is 1 if it is not there
    Unset(ConfigUnset),
    /// Print the path of your config.toml, existing or not
    Path(ConfigPath),
    /// Print the JSON Schema that lets editors complete config.toml
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigList {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Print the origin of each value: a file, -c, or a variable
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

    /// Key, such as model or model_providers.mine.base_url
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// Print the value as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigSet {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Key, such as model or model_providers.mine.base_url
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// New value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigUnset {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Key to remove
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigPath {
    /// Print the path of the administrator's file instead
    #[arg(long)]
    pub(crate) system: bool,
}
