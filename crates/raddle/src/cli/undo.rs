//! The command lines of `raddle undo`, `raddle apply`, `raddle diff` and `raddle gc`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Thread id, or a unique prefix; default: the newest thread of this folder
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// Undo the last undo instead
    #[arg(long)]
    pub(crate) redo: bool,

    /// Print what would change, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) preview: bool,

    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,

    /// Restore this file although it changed since; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) overwrite: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Files to apply, as the list names them; default: all
    #[arg(value_name = "PATH")]
    pub(crate) files: Vec<String>,

    /// Thread id, or a unique prefix; default: the newest thread with a copy of this folder
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// Print the diff of the copy, and change nothing
    #[arg(long, conflicts_with_all = ["yes", "files"])]
    pub(crate) preview: bool,

    /// Undo the last apply instead
    #[arg(long, conflicts_with_all = ["files", "preview", "overwrite"])]
    pub(crate) undo: bool,

    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,

    /// Apply this file although it changed here too; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) overwrite: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Thread id, or a unique prefix; default: the newest thread of this folder
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// Turn id, or a unique prefix; default: the last turn that changed files
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,

    /// Print the changes of all turns together
    #[arg(long, conflicts_with = "turn")]
    pub(crate) all: bool,

    /// Print the number of changed lines of each file instead
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Remove copies that are older than this many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub(crate) older_than: u32,

    /// Then remove the oldest copies of each workspace until the rest fits
    #[arg(long, value_name = "MIB", default_value_t = 5120)]
    pub(crate) max_size: u32,
}
