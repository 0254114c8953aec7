//! The command line of `raddle sandbox` and `raddle doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::SettingArgs;

#[derive(Debug, Args)]
pub(crate) struct Sandbox {
    /// Let it write nothing, not even the folder it starts in
    #[arg(long, conflicts_with = "write")]
    pub(crate) read_only: bool,

    /// Let it write this path, too; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,

    /// Let it read only the system's programs, what it may write, and this path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,

    /// Hide this path from it; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) hide: Vec<PathBuf>,

    /// Give it an empty /tmp that is gone with it
    #[arg(long)]
    pub(crate) private_tmp: bool,

    /// Let it use the network
    #[arg(long)]
    pub(crate) network: bool,

    /// Let it write .git, .codex, .agents and .raddle, from which other programs take orders
    #[arg(long)]
    pub(crate) unprotected: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Try the fence again, although what was found earlier still applies
    #[arg(long)]
    pub(crate) again: bool,

    /// Also ask the configured providers for their models, with their keys
    #[arg(long)]
    pub(crate) online: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
