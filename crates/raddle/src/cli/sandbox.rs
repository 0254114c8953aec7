//! The command line of `raddle sandbox` and `raddle doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::SettingArgs;

#[derive(Debug, Args)]
pub(crate) struct Sandbox {
    /// Deny all writes, even to the folder it starts in
    #[arg(long, conflicts_with = "write")]
    pub(crate) read_only: bool,

    /// Also allow writes to this path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,

    /// Allow reads only of system programs, writable paths and this path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,

    /// Hide this path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) hide: Vec<PathBuf>,

    /// Give it an empty /tmp that is removed at its end
    #[arg(long)]
    pub(crate) private_tmp: bool,

    /// Allow network access
    #[arg(long)]
    pub(crate) network: bool,

    /// Allow writes to .git, .codex, .agents and .raddle, which can make other programs run code
    #[arg(long)]
    pub(crate) unprotected: bool,

    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Test the sandbox again instead of using the cached result
    #[arg(long)]
    pub(crate) again: bool,

    /// Print the details of the sandbox
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Also request the model lists of the configured providers, with their keys
    #[arg(long)]
    pub(crate) online: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
