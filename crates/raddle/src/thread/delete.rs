//! `raddle thread delete`.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use raddle_console::one_line;
use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Event, RecordBody, Thread, ThreadId};
use raddle_store::{Archive, LocalJournal, NodeError, NodeLock, Options};

use super::{find, open_existing, usage};
use crate::cli::ThreadDelete;
use crate::log;
use crate::threads::copy_folders;

/// How much of a journal is read at a time.
const PAGE_BYTES: usize = 1 << 20;

pub(super) fn run(folder: &Path, args: &ThreadDelete) -> Result<ExitCode> {
    let archive = open_existing(folder)?;
    let thread = find(&archive, &args.id)?;
    if let Some(node) = owner(&archive, thread)?
        && is_alive(folder, &node)?
    {
        bail!(
            "a running server has the thread {thread} (node {node}); delete it there, or stop that \
             server first"
        );
    }
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return Ok(usage(
                "there is no terminal to confirm on: give --yes to delete the thread",
            ));
        }
        if !confirm(&archive, thread)? {
            bail!("nothing was deleted");
        }
    }
    drop(archive);
    let journal = LocalJournal::open(&Options {
        folder: folder.to_owned(),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(journal.delete(thread))?;
    // Closing the journal checkpoints its write-ahead log, which may still hold the thread.
    drop(journal);
    if let Some(home) = folder.parent() {
        let copies = copy_folders(home);
        let removed = raddle_tools::remove_checkpoints(&copies, thread);
        removed.context("the thread is deleted, but its checkpoints remain")?;
        if let Some(copy) = copies.copy_of(thread) {
            log::print_line(&format!(
                "its copy of the workspace stays in {}; `raddle gc` lists the copies that no thread uses",
                copy.display()
            ));
        }
    }
    log::print_line(&format!("deleted {thread}"));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn is_alive(folder: &Path, node: &str) -> Result<bool> {
    match NodeLock::is_alive(folder, node) {
        // No node of this home can have a name that is invalid for a lock.
        Err(NodeError::BadName(_)) => Ok(false),
        alive => alive
            .context("cannot tell whether a running server has the thread; nothing was deleted"),
    }
}

/// Asks the user for confirmation.
fn confirm(archive: &Archive, thread: ThreadId) -> Result<bool> {
    let summary = archive.summary(thread).ok().flatten();
    let title = summary.map(|it| one_line(it.name.as_deref().unwrap_or(&it.preview), 60));
    let title = title.unwrap_or_default();
    log::print_line(&format!("delete {thread} {title:?} for good? Type yes:"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "yes"))
}

/// The last node that owned the thread and did not release it. An unreadable thread can have no
/// owner.
fn owner(archive: &Archive, thread: ThreadId) -> Result<Option<String>> {
    let read = || -> Result<Option<String>, ReadError> {
        let base = archive.base(thread, None)?;
        let mut folded = base.map_or_else(Thread::new, |base| base.thread);
        let mut released = false;
        loop {
            let page = archive.records(thread, folded.head(), PAGE_BYTES)?;
            if page.is_empty() {
                break;
            }
            for record in &page {
                if let RecordBody::Event(event) = &record.body {
                    match **event {
                        Event::Owned(_) => released = false,
                        Event::Released { .. } => released = true,
                        _ => {}
                    }
                }
                folded.apply(record);
            }
        }
        // A fork inherits records of another thread, whose owner is not its own.
        let own = folded.id() == Some(thread) && !released;
        Ok(folded.node().filter(|_| own).map(str::to_owned))
    };
    match read() {
        Err(ReadError::Corrupt { .. } | ReadError::Newer(_)) => Ok(None),
        owner => Ok(owner?),
    }
}
