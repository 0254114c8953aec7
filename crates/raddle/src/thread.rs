//! `raddle thread`: the threads of a home, without a server or beside one.

#[cfg(feature = "fleet")]
mod database;
mod delete;
mod export;
mod import;
mod list;
mod move_to;
mod show;
pub(crate) mod time;
mod unarchive;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use raddle_core::ThreadId;
use raddle_core::ports::{ListQuery, ReadError};
use raddle_store::Archive;

use crate::cli::ThreadCommand;
use crate::home::Home;
use crate::{log, postgres};

/// The exit status for invalid arguments.
const USAGE: u8 = 2;

/// Runs a command and returns its exit status: 0 on success, 1 if something is damaged, 2 for
/// invalid arguments. Any other failure is an error, which also ends in 1.
pub(crate) fn run(command: ThreadCommand) -> Result<ExitCode> {
    let home = Home::find()?;
    #[cfg(feature = "fleet")]
    if postgres::is_configured(&home) {
        return database::run(&home, &command);
    }
    let folder = match &command {
        // It reads any store.
        ThreadCommand::Move(_) => home.threads(),
        _ => home_folder()?,
    };
    match command {
        ThreadCommand::Move(args) => move_to::run(&home, &args),
        ThreadCommand::List(args) => list::run(&folder, &args),
        ThreadCommand::Show(args) => show::run(&folder, &args),
        ThreadCommand::Export(args) => export::run(&folder, &args),
        ThreadCommand::Import(args) => import::run(&folder, &args),
        ThreadCommand::Verify(args) => verify::run(&folder, &args),
        ThreadCommand::Unarchive(args) => unarchive::run(&folder, &args),
        ThreadCommand::Delete(args) => delete::run(&folder, &args),
    }
}

/// Returns the folder of the home's threads. Fails if the configuration stores threads elsewhere: an
/// empty answer would mean that they are lost.
fn home_folder() -> Result<PathBuf> {
    let home = Home::find()?;
    ensure!(
        !postgres::is_configured(&home),
        "the threads are in the database that `[store]` in the configuration names, and this command \
         reads the home only; use a client of the server"
    );
    Ok(home.threads())
}

/// Reports invalid arguments.
pub(crate) fn usage(what: &str) -> ExitCode {
    log::print_line(&format!("raddle: {what}"));
    ExitCode::from(USAGE)
}

/// Opens the journal read-only; `None` if the home has none yet.
fn open(folder: &Path) -> Result<Option<Archive>> {
    Archive::open(folder).map_err(|error| unreadable(folder, error))
}

/// Opens the journal; an error if there is none, because the user named a thread in it.
fn open_existing(folder: &Path) -> Result<Archive> {
    open(folder)?.with_context(|| {
        format!(
            "there are no threads in {}; RADDLE_HOME names the home, see `raddle thread list`",
            folder.display()
        )
    })
}

/// Describes why the whole journal cannot be read, with advice.
fn unreadable(folder: &Path, error: ReadError) -> anyhow::Error {
    let folder = folder.display();
    match error {
        ReadError::Corrupt { what, .. } => anyhow!(
            "the journal in {folder} is damaged: {what}; stop every server of this home, copy the \
             folder, and run `raddle thread export --all --out DIR` to save every thread that is whole"
        ),
        error => anyhow!("the journal in {folder} cannot be read: {error}"),
    }
}

/// Returns the one thread with this prefix of its id.
fn find(archive: &Archive, id: &str) -> Result<ThreadId> {
    match archive.find(id)?.as_slice() {
        [] => bail!("no thread has an id that begins with {id}; see `raddle thread list`"),
        [thread] => Ok(*thread),
        _ => bail!("more than one thread has an id that begins with {id}; give more of it"),
    }
}

/// Returns the thread with this prefix of its id, or the newest one of the current folder that was
/// used.
pub(crate) fn named_or_newest(id: Option<&str>) -> Result<ThreadId> {
    let home = Home::find()?;
    if postgres::is_configured(&home) {
        // The server that is asked next knows its threads.
        let thread = id.and_then(|id| id.parse().ok());
        return thread.context(
            "the threads are in the database that `[store]` in the configuration names; give the whole \
             id of one with --thread ID",
        );
    }
    let folder = home.threads();
    let archive = open_existing(&folder)?;
    if let Some(id) = id {
        return find(&archive, id);
    }
    let cwd = std::env::current_dir().context("cannot find out the current folder")?;
    let query = ListQuery {
        cwds: vec![cwd.to_string_lossy().into_owned()],
        used: true,
        limit: 1,
        ..ListQuery::default()
    };
    let page = archive.list(&query);
    let page = page.map_err(|error| unreadable(&folder, error))?;
    let newest = page.entries.first().with_context(|| {
        format!(
            "no thread has the folder {}; give --thread ID, see `raddle thread list`",
            cwd.display()
        )
    })?;
    Ok(newest.thread)
}

/// Returns those of these threads that are stored, in their order. A journal that cannot be read is
/// an error: it does not mean that they were deleted.
pub(crate) fn stored(mut threads: Vec<ThreadId>) -> Result<Vec<ThreadId>> {
    let folder = home_folder()?;
    let Some(archive) = open(&folder)? else {
        return Ok(Vec::new());
    };
    let mut failure = None;
    threads.retain(|it| match archive.find(&it.to_string()) {
        Ok(found) => !found.is_empty(),
        Err(error) => {
            failure = Some(error);
            false
        }
    });
    match failure {
        Some(error) => Err(unreadable(&folder, error)),
        None => Ok(threads),
    }
}

/// Describes the failure of one thread, with advice.
fn damaged(thread: ThreadId, error: ReadError) -> anyhow::Error {
    match error {
        ReadError::Corrupt { .. } => anyhow!(
            "{error}; `raddle thread verify {thread}` says more, and `raddle thread export --partial \
             {thread}` saves what comes before it"
        ),
        error => error.into(),
    }
}

/// The location of the stored threads.
impl Home {
    pub(crate) fn threads(&self) -> PathBuf {
        self.state.join("threads")
    }
}
