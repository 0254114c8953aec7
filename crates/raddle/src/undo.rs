//! `raddle undo`: restore the files that a turn changed.

mod choice;

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_client::Client;
use raddle_console::print_lines;
use raddle_core::{ThreadId, Timestamp};
use raddle_protocol::{
    Checkpoint, FileConflict, FileConflictReason, RestoreScope, RestoredFile,
    ThreadCheckpointRestoreParams, methods,
};

use self::choice::{Choice, choose};
pub(crate) use self::choice::{checkpoints, is_change_of_turn, not_reversed};
use crate::cli::Undo;
use crate::thread::time::utc;
use crate::{log, runtime, thread};

pub(crate) fn run(args: &Undo) -> Result<ExitCode> {
    let is_interactive = std::io::stdin().is_terminal();
    if !args.yes && !args.preview && !is_interactive {
        return Ok(thread::usage(
            "there is no terminal to confirm on: give --yes to restore the files, or --preview",
        ));
    }
    let thread = thread::named_or_newest(args.thread.as_deref())?;
    runtime::current_thread()?.block_on(async {
        let client = crate::thread_server::connect().await?;
        let outcome = undo(&client, thread, args).await;
        client.close().await;
        outcome
    })
}

async fn undo(client: &Client, thread: ThreadId, args: &Undo) -> Result<ExitCode> {
    let Some(choice) = choose(client, thread, args).await? else {
        log::print_line(&format!("nothing to {} in {thread}", verb(args)));
        return Ok(ExitCode::FAILURE);
    };
    let Choice {
        checkpoint,
        preview,
        overwrite,
    } = choice;
    print_lines(
        std::iter::once(heading(&checkpoint)).chain(listed(&preview.restored, &preview.conflicts)),
    )?;
    if args.preview || preview.restored.is_empty() {
        return Ok(status(preview.restored.len(), &preview.conflicts));
    }
    let question = format!("restore {}? [y/N]", count(preview.restored.len()));
    if !args.yes && !matches!(answer(&question)?.as_str(), "y" | "Y" | "yes") {
        log::print_line("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    let params = ThreadCheckpointRestoreParams {
        thread_id: thread,
        checkpoint_id: checkpoint.id,
        what: RestoreScope::Files,
        overwrite: Some(overwrite),
        client_request_id: None,
    };
    let done = client.call::<methods::ThreadCheckpointRestore>(params);
    let done = done.await.context("the files were not restored")?;
    if (&done.restored, &done.conflicts) != (&preview.restored, &preview.conflicts) {
        // A file changed between the preview and the restore.
        print_lines(listed(&done.restored, &done.conflicts))?;
    }
    let inverse = match args.redo {
        true => "raddle undo",
        false => "raddle undo --redo",
    };
    log::print_line(&format!(
        "restored {}; `{inverse}` reverses it",
        count(done.restored.len())
    ));
    Ok(status(done.restored.len(), &done.conflicts))
}

fn verb(args: &Undo) -> &'static str {
    match args.redo {
        true => "redo",
        false => "undo",
    }
}

fn heading(checkpoint: &Checkpoint) -> String {
    let at = utc(Timestamp(checkpoint.created_at.saturating_mul(1000)));
    let folder = &checkpoint.cwd;
    match &checkpoint.turn_id {
        Some(turn) => format!("to the state before the turn {turn} of {at}, in {folder}:"),
        None => format!("to the state before the undo of {at}, in {folder}:"),
    }
}

/// Returns a line for each file. A path is shown with its escapes, so it cannot look like two
/// lines.
pub(crate) fn listed<'a>(
    restored: &'a [RestoredFile],
    conflicts: &'a [FileConflict],
) -> impl Iterator<Item = String> + 'a {
    let restored = restored.iter().map(move |it| {
        let effect = format!("{}:", it.effect.as_str());
        format!("  {effect:<9} {}", one_line(&it.path))
    });
    let conflicts = conflicts.iter().map(move |it| {
        let reason = match &it.reason {
            FileConflictReason::Changed => "it changed since",
            FileConflictReason::AuthorUnknown => "the author of a change is not known",
            FileConflictReason::ControlsGit => "git runs or reads it",
            FileConflictReason::Unrecognized(reason) => reason,
        };
        format!(
            "  conflict: {} stays as it is, because {reason}; --overwrite restores it",
            one_line(&it.path)
        )
    });
    restored.chain(conflicts)
}

/// Returns a path in one line.
pub(crate) fn one_line(path: &str) -> String {
    path.replace('\n', "\\n")
}

pub(crate) fn status(files: usize, conflicts: &[FileConflict]) -> ExitCode {
    match files > 0 && conflicts.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints a question, and reads the answer; empty at the end of input.
pub(crate) fn answer(question: &str) -> Result<String> {
    log::print_line(question);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

pub(crate) fn count(files: usize) -> String {
    match files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_one_line() {
        let restored = |path: &str, effect: &str| RestoredFile {
            path: path.to_owned(),
            effect: effect.into(),
        };
        let conflict = |path: &str, reason: &str| FileConflict {
            path: path.to_owned(),
            base_hash: None,
            result_hash: None,
            current_hash: None,
            reason: reason.into(),
        };
        let files = [restored("a", "created"), restored("b\nc", "deleted")];
        let conflicts = [conflict("d", "changed"), conflict("e", "authorUnknown")];
        let lines: Vec<String> = listed(&files, &conflicts).collect();
        assert_eq!(
            lines,
            [
                "  created:  a",
                "  deleted:  b\\nc",
                "  conflict: d stays as it is, because it changed since; --overwrite restores it",
                "  conflict: e stays as it is, because the author of a change is not known; \
                 --overwrite restores it",
            ]
        );
    }
}
