//! The command line of `raddle thread`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// List threads, newest first
    List(ThreadList),
    /// Show the turns and items of a thread
    Show(ThreadShow),
    /// Write threads to files, each of which stands for itself
    ///
    /// A file holds every record of a thread and all bytes that they name, and ends with a seal, so that
    /// `raddle thread import` can tell a whole file from one that was cut or changed. Where the journal's
    /// file is damaged, threads are read around the damage; those that cannot be are named, and the exit
    /// status is 1.
    Export(ThreadExport),
    /// Bring an exported thread into this home, with its id and its numbers
    ///
    /// The file is history and allows nothing: open turns end, rights and approvals are dropped, and the
    /// sandbox is read-only with questions on request. A client that resumes the thread can set them anew.
    Import(ThreadImport),
    /// Read threads from end to end and say whether they are as they were written; changes nothing
    ///
    /// Checks the hash chain of each thread, its records, the bytes that they name, and the lists and
    /// pages that were made from them; without ids also the journal's file. The exit status is 1 if
    /// anything is damaged. `docs/damage.md` says what can be done, and what cannot be noticed.
    Verify(ThreadVerify),
    /// Delete a thread for good
    Delete(ThreadDelete),
}

#[derive(Debug, Args)]
pub(crate) struct ThreadList {
    /// Archived threads instead of the others
    #[arg(long)]
    pub(crate) archived: bool,

    /// Only threads of this working folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Only threads that hold this text, of at least 3 letters
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// How many threads, at most 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Go on where the page before ended, with the cursor that it gave
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// Print one JSON object with `data` and `nextCursor`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadShow {
    /// The thread's id, or the beginning of it if no other begins so
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print JSON lines: the thread, then each turn and its items
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadExport {
    /// The threads' ids, or the beginnings of them
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,

    /// Every thread of the home
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// A file for one thread, or a folder for any number; without it one thread goes to stdout
    #[arg(long, value_name = "FILE|DIR", required_if_eq("all", "true"))]
    pub(crate) out: Option<PathBuf>,

    /// Of a damaged thread, write what is sound: the records before the damage
    #[arg(long)]
    pub(crate) partial: bool,

    /// Print a JSON line for each thread
    #[arg(long, requires = "out")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadImport {
    /// A file that `raddle thread export` wrote; - reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// As a fork with an id of its own, whether or not this home has the thread
    #[arg(long)]
    pub(crate) as_new: bool,

    /// Where the file lacks bytes that a record names, import what comes before that record
    #[arg(long)]
    pub(crate) partial: bool,

    /// Print a JSON line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadVerify {
    /// The threads' ids, or the beginnings of them; without any, every thread and the journal's file
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Every thread and the journal's file, as without ids
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Print a JSON line for the file and for each thread
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadDelete {
    /// The thread's id, or the beginning of it if no other begins so
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Do not ask
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}
