//! The command line of `raddle thread`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// List threads, newest first
    List(ThreadList),
    /// Show the turns and items of a thread
    Show(ThreadShow),
    /// Write threads to self-contained files
    ///
    /// A file holds every record of a thread with all referenced bytes, and ends with a seal, so
    /// that `raddle thread import` detects truncated or changed files. If the journal's file is
    /// damaged, intact threads are still exported; the others are listed, and the exit status is 1.
    Export(ThreadExport),
    /// Import an exported thread, keeping its id and sequence numbers
    ///
    /// The file grants no permissions: open turns end, grants and approvals are dropped, and the
    /// sandbox is read-only with approvals on request. A client that resumes the thread can set
    /// them again.
    Import(ThreadImport),
    /// Check the integrity of stored threads; changes nothing
    ///
    /// Checks the hash chain of each thread, its records, the bytes that they reference, and the
    /// lists and pages derived from them; without ids also the journal's file. The exit status is 1
    /// if anything is damaged. `docs/damage.md` describes the remedies, and the damage that cannot
    /// be detected.
    Verify(ThreadVerify),
    /// Move threads to another home, or to or from a PostgreSQL database
    ///
    /// A thread keeps its id and its sequence numbers, so that clients can rejoin where they left.
    /// It leaves the home only after it was read back from the destination. A move that was
    /// interrupted can be repeated, and ends then. Moves from the database that `[store]` in the
    /// configuration names, if there is one, else from the home. No server may have the thread.
    ///
    /// Not moved: checkpoints, copies of workspaces, and the configuration. A fork gets records of its
    /// own for the history that it shared. Databases need the build for fleets.
    #[command(name = "move")]
    Move(ThreadMove),
    /// Show an archived thread in lists again
    ///
    /// Works beside a running server. `raddle thread list --archived` shows the archived threads.
    /// `raddle exec resume ID` restores an archived thread too.
    Unarchive(ThreadUnarchive),
    /// Delete a thread permanently
    Delete(ThreadDelete),
}

#[derive(Debug, Args)]
pub(crate) struct ThreadList {
    /// List archived threads instead
    #[arg(long)]
    pub(crate) archived: bool,

    /// Only threads of this working folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Only threads with this text of at least 3 letters
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Maximum number of threads, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Continue from the cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// Print one JSON object with `data` and `nextCursor`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadShow {
    /// Thread id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print JSON lines: the thread, then each turn and its items
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadExport {
    /// Thread ids, or unique prefixes
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,

    /// Export every thread of the home
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Output file for one thread, or folder for several; without it one thread goes to stdout
    #[arg(long, value_name = "FILE|DIR", required_if_eq("all", "true"))]
    pub(crate) out: Option<PathBuf>,

    /// Of a damaged thread, write the intact records before the damage
    #[arg(long)]
    pub(crate) partial: bool,

    /// Print a JSON line for each thread
    #[arg(long, requires = "out")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadImport {
    /// File written by `raddle thread export`; - reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Import as a fork with a new id, even if this home has the thread
    #[arg(long)]
    pub(crate) as_new: bool,

    /// If referenced bytes are missing, import the records before the first that needs them
    #[arg(long)]
    pub(crate) partial: bool,

    /// Print a JSON line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadVerify {
    /// Thread ids, or unique prefixes; without any, every thread and the journal's file
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Check every thread and the journal's file, as without ids
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Print a JSON line for the file and for each thread
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadMove {
    /// Thread ids; from a home also unique prefixes
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,

    /// Move every thread
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Address of a database as postgres://…, or the folder of another home
    #[arg(long, value_name = "ADDRESS|HOME")]
    pub(crate) to: String,

    /// Schema of the tables in the database, if it is not `raddle`
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,

    /// Print a JSON line for each thread
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadUnarchive {
    /// Thread id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadDelete {
    /// Thread id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}
