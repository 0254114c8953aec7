//! `raddle apply`: apply the changes of a thread that works in a copy.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_client::Client;
use raddle_console::print_lines;
use raddle_core::ThreadId;
use raddle_protocol::{
    Checkpoint, FileConflict, FileConflictReason, FileDiff, FileToApply, RestoreScope,
    ThreadCheckpointRestoreParams, ThreadWorkspaceApplyParams, ThreadWorkspaceReadParams,
    ThreadWorkspaceReadResponse, WorkspaceMode, WorkspaceOverlap, methods,
};

use crate::cli::Apply;
use crate::home::Home;
use crate::threads::copy_folders;
use crate::undo::{checkpoints, count, not_reversed, one_line, status};
use crate::{diff, log, runtime, thread, thread_server, undo};

mod hunks;

pub(crate) fn run(args: &Apply) -> Result<ExitCode> {
    let is_interactive = std::io::stdin().is_terminal();
    if !args.yes && !args.preview && !args.undo && !is_interactive {
        return Ok(thread::usage(
            "there is no terminal to confirm on: give --yes to apply the changes, or --preview",
        ));
    }
    let thread = match &args.thread {
        Some(id) => thread::named_or_newest(Some(id))?,
        None => newest()?,
    };
    runtime::current_thread()?.block_on(async {
        let client = thread_server::connect().await?;
        let outcome = match args.undo {
            true => undo(&client, thread).await,
            false => apply(&client, thread, args).await,
        };
        client.close().await;
        outcome
    })
}

/// Returns the newest stored thread with a copy of the current folder.
fn newest() -> Result<ThreadId> {
    let folder = std::env::current_dir().context("cannot find out the current folder")?;
    let copied = copy_folders(&Home::find()?.state).threads_of(&folder);
    let newest = thread::stored(copied)?.into_iter().next();
    newest.with_context(|| {
        format!(
            "no thread works in a copy of {}; start one with `raddle exec --workspace copy`, or give \
             --thread ID",
            folder.display()
        )
    })
}

async fn apply(client: &Client, thread: ThreadId, args: &Apply) -> Result<ExitCode> {
    let params = ThreadWorkspaceReadParams { thread_id: thread };
    let read = client.call::<methods::ThreadWorkspaceRead>(params);
    let read = read
        .await
        .context("the changes of the copy cannot be read")?;
    if read.mode != WorkspaceMode::Copy {
        log::print_line(&format!(
            "{thread} works in the folder itself, not in a copy"
        ));
        return Ok(ExitCode::FAILURE);
    }
    let chosen: Vec<&FileDiff> = read
        .diff
        .files
        .iter()
        .filter(|it| is_chosen(it, args))
        .collect();
    if let Some(unknown) = unknown(&read, args) {
        return Ok(thread::usage(&format!(
            "`{unknown}` is no changed file of the copy; `raddle apply --preview` shows them"
        )));
    }
    if chosen.is_empty() {
        log::print_line(&format!("nothing to apply from {thread}"));
        return Ok(ExitCode::FAILURE);
    }
    if args.preview {
        diff::print(&read.diff.unified)?;
        for line in warnings(&read) {
            log::print_line(&line);
        }
        return Ok(status(chosen.len(), &read.conflicts));
    }
    let origin = read.origin.as_deref().unwrap_or_default();
    print_lines(std::iter::once(format!("to {origin}:")).chain(listed(&chosen)))?;
    for line in warnings(&read) {
        log::print_line(&line);
    }
    let files = match args.yes {
        true => Some(chosen.iter().map(|it| whole(it)).collect()),
        false => ask(&chosen)?,
    };
    let Some(files) = files.filter(|it| !it.is_empty()) else {
        log::print_line("nothing was changed");
        return Ok(ExitCode::FAILURE);
    };
    let params = ThreadWorkspaceApplyParams {
        thread_id: thread,
        files: Some(files),
        overwrite: Some(args.overwrite.clone()),
    };
    let done = client.call::<methods::ThreadWorkspaceApply>(params);
    let done = done.await.context("the changes were not applied")?;
    let undo = match done.applied.is_empty() {
        true => String::new(),
        false => format!("; `raddle apply --undo --thread {thread}` reverses it"),
    };
    log::print_line(&format!("applied {}{undo}", count(done.applied.len())));
    print_lines(done.conflicts.iter().map(conflict))?;
    Ok(status(done.applied.len(), &done.conflicts))
}

/// Undoes the last apply that was not undone. One that the user reversed by hand is passed over.
async fn undo(client: &Client, thread: ThreadId) -> Result<ExitCode> {
    let checkpoints = not_reversed(checkpoints(client, thread).await?);
    let is_apply = |it: &&Checkpoint| {
        it.turn_id.is_none() && it.restored_checkpoint_id.is_none() && it.changed_files > 0
    };
    for applied in checkpoints.iter().filter(is_apply) {
        let params = ThreadCheckpointRestoreParams {
            thread_id: thread,
            checkpoint_id: applied.id.clone(),
            what: RestoreScope::Files,
            overwrite: None,
            client_request_id: None,
        };
        let done = client.call::<methods::ThreadCheckpointRestore>(params);
        let done = done.await.context("the files were not restored")?;
        if done.restored.is_empty() && done.conflicts.is_empty() {
            continue;
        }
        print_lines(undo::listed(&done.restored, &done.conflicts))?;
        log::print_line(&format!("restored {}", count(done.restored.len())));
        return Ok(status(done.restored.len(), &done.conflicts));
    }
    log::print_line(&format!("there is nothing applied from {thread} to undo"));
    Ok(ExitCode::FAILURE)
}

/// Asks the user what to apply; `None` if it is nothing.
fn ask(chosen: &[&FileDiff]) -> Result<Option<Vec<FileToApply>>> {
    let choice = hunks::choice(chosen);
    let keys = if choice.is_some() { "y/N/h" } else { "y/N" };
    let answer = undo::answer(&format!("apply {}? [{keys}]", count(chosen.len())))?;
    Ok(match (answer.as_str(), choice) {
        ("y" | "Y" | "yes", _) => Some(chosen.iter().map(|it| whole(it)).collect()),
        ("h" | "H" | "hunks", Some(choice)) => hunks::chosen(chosen, choice)?,
        _ => None,
    })
}

/// Returns the whole change of a file.
fn whole(file: &FileDiff) -> FileToApply {
    FileToApply {
        path: file.path.clone(),
        change_id: Some(file.change_id.clone()),
        hunks: None,
    }
}

/// Whether a file is to be applied.
fn is_chosen(file: &FileDiff, args: &Apply) -> bool {
    args.files.is_empty() || args.files.contains(&file.path)
}

/// Returns a path of the command line that no chosen change has.
fn unknown<'a>(read: &ThreadWorkspaceReadResponse, args: &'a Apply) -> Option<&'a String> {
    let is_unknown = |path: &&String| !read.diff.files.iter().any(|it| it.path == **path);
    let unknown = args.files.iter().find(is_unknown);
    // Of a renamed file, the old path may be in conflict too.
    let has_path = |file: &FileDiff, path: &String| {
        file.path == *path || file.previous_path.as_ref() == Some(path)
    };
    let chosen = read.diff.files.iter().filter(|it| is_chosen(it, args));
    let mut overwrite = args.overwrite.iter();
    unknown.or_else(|| overwrite.find(|path| !chosen.clone().any(|it| has_path(it, path))))
}

/// Returns a line for each file. A path is shown with its escapes, so it cannot look like two lines.
fn listed<'a>(files: &'a [&FileDiff]) -> impl Iterator<Item = String> + 'a {
    files.iter().map(|it| {
        let kind = format!("{}:", it.kind.as_str());
        let from = it.previous_path.as_ref();
        let from = from.map_or_else(String::new, |it| format!("{} -> ", one_line(it)));
        format!("  {kind:<12} {from}{}", one_line(&it.path))
    })
}

/// Returns what the user should know before.
fn warnings(read: &ThreadWorkspaceReadResponse) -> Vec<String> {
    let conflicts = read.conflicts.iter().map(conflict);
    let overlaps = read
        .overlaps
        .iter()
        .map(|WorkspaceOverlap { thread_id, paths }| {
            let paths: Vec<String> = paths.iter().map(|it| one_line(it)).collect();
            format!(
                "the thread {thread_id} changed the same files in its copy: {}",
                paths.join(", ")
            )
        });
    conflicts.chain(overlaps).collect()
}

fn conflict(it: &FileConflict) -> String {
    let reason = match it.reason {
        FileConflictReason::ControlsGit => "git runs or reads it",
        _ => "it changed here too",
    };
    format!(
        "  conflict: {} stays as it is, because {reason}; --overwrite applies it",
        one_line(&it.path)
    )
}
