//! The command line of `raddle plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Write a plugin to start from, in a language of your choice
    ///
    /// The folder gets a manifest, plugin.toml, and one source file without dependencies. The next
    /// commands to run are printed. docs/plugins.md is a tutorial.
    New(PluginNew),
    /// Start a plugin in the sandbox and check it against the contract
    ///
    /// Calls plugin/health, each method whose entry in plugin.toml has an example, and
    /// plugin/shutdown, and answers the approvals that the plugin asks for meanwhile. The exit
    /// status is 1 if the plugin violates the contract. docs/plugins-reference.md lists the
    /// violations.
    Test(PluginTest),
    /// Install the plugin in a folder, and trust its files as they are now
    ///
    /// Adds its id, its folder and the hash of all files below the folder to your config.toml.
    /// Read what the plugin does first. It does not run once a file has changed, until `raddle
    /// plugin trust` is run.
    Add(PluginAdd),
    /// List the installed plugins and whether they run
    List(PluginList),
    /// Let threads use a plugin
    Enable(PluginId),
    /// Keep threads from using a plugin
    Disable(PluginId),
    /// Trust the files of a plugin as they are now
    Trust(PluginId),
    /// Withdraw the approval of a plugin's permission, or of all
    ///
    /// A server that runs applies it at once. The plugin may ask for the permission again.
    Revoke(PluginRevoke),
    /// Remove a plugin from your config.toml; its folder stays
    Remove(PluginId),
    /// Print the log of a plugin: its stderr, and when and why its process ended
    Logs(PluginLogs),
}

#[derive(Debug, Args)]
pub(crate) struct PluginAdd {
    /// Folder of the plugin
    #[arg(value_name = "PATH")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PluginList {
    /// Print a JSON list
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginLogs {
    /// Id of the plugin, as `raddle plugin list` prints it
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Number of lines, the last ones
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub(crate) lines: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PluginId {
    /// Id of the plugin, as `raddle plugin list` prints it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct PluginRevoke {
    /// Id of the plugin, as `raddle plugin list` prints it
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Permission, such as workspace.read; all if left out
    #[arg(value_name = "PERMISSION")]
    pub(crate) permission: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginNew {
    /// Folder of the plugin; created if missing, and empty otherwise
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Language of the plugin
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: PluginLanguage,

    /// Id of the plugin; by default local.NAME, with the name of the folder
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginTest {
    /// Folder of the plugin
    #[arg(value_name = "PATH")]
    pub(crate) folder: PathBuf,

    /// Approve the permissions that the plugin asks for and its manifest lists
    #[arg(long, conflicts_with = "deny")]
    pub(crate) approve: bool,

    /// Deny all permissions, which is the default
    #[arg(long)]
    pub(crate) deny: bool,

    /// Time for each response, and for the exit
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub(crate) timeout: u64,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginLanguage {
    /// Python 3.8 or newer
    Python,
    /// TypeScript, for Node.js 22.18 or newer
    Typescript,
    /// Go 1.21 or newer
    Go,
    /// Rust, built with rustc alone
    Rust,
}
