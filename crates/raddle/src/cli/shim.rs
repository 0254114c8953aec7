//! The command line of `raddle shim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ShimCommand {
    /// Link this program as `codex`, for clients that start a program of that name
    ///
    /// The link starts this program, which then reports the version of Codex whose contract it
    /// serves. A file that is not such a link is kept unless --force is given. To uninstall, remove
    /// the link.
    Install(ShimInstall),
}

#[derive(Debug, Args)]
pub(crate) struct ShimInstall {
    /// Folder of the link; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "vscode")]
    pub(crate) dir: Option<PathBuf>,

    /// Folder in which VS Code's agent host looks for the npm package of Codex
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    pub(crate) vscode: Option<PathBuf>,

    /// Replace any file of that name
    #[arg(long)]
    pub(crate) force: bool,
}
