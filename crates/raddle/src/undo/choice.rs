//! The checkpoint that an undo restores.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use raddle_client::Client;
use raddle_core::ThreadId;
use raddle_protocol::table::plain_path;
use raddle_protocol::{
    Checkpoint, ThreadCheckpointListParams, ThreadCheckpointPreviewParams,
    ThreadCheckpointPreviewResponse, methods,
};

use crate::cli::Undo;

/// Number of checkpoints on a page.
const PAGE: u32 = 100;

/// Limit: turns that `raddle undo` looks back for files to restore; beyond it, it finds nothing to
/// undo.
const LOOK_BACK_MAX: usize = 100;

/// A checkpoint to restore.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) checkpoint: Checkpoint,
    /// Files that a restore would change.
    pub(super) preview: ThreadCheckpointPreviewResponse,
    /// Paths to restore although they changed since, relative to the folder of the checkpoint.
    pub(super) overwrite: Vec<String>,
}

/// The `errorInfo` of a path to overwrite that neither a checkpoint nor a later one changed.
const PATH_NOT_CHANGED: &str = "path_not_changed";

/// Returns the newest checkpoint whose files are not restored already: of a turn, or with `--redo`
/// of a restore. It or a later one changed every path to overwrite. If there is none, returns
/// nothing.
pub(super) async fn choose(
    client: &Client,
    thread: ThreadId,
    args: &Undo,
) -> Result<Option<Choice>> {
    let checkpoints = checkpoints(client, thread).await?;
    let turns = checkpoints.iter().filter(|it| is_change_of_turn(it));
    let turns: BTreeSet<String> = turns.map(|it| it.id.clone()).collect();
    let is_wanted = |it: &Checkpoint| match args.redo {
        // The restores of turns, not those that reversed one.
        true => it
            .restored_checkpoint_id
            .as_ref()
            .is_some_and(|it| turns.contains(it)),
        false => is_change_of_turn(it),
    };
    // A redo only reverses the newest restore, and not one before newer work, which would be
    // removed with it.
    let look_back = match args.redo {
        true => 1,
        false => LOOK_BACK_MAX,
    };
    let checkpoints = match args.overwrite.is_empty() {
        true => not_reversed(checkpoints),
        // A file that was left alone is restored after its turn was.
        false => checkpoints,
    };
    let current = std::env::current_dir().context("cannot find out the current folder")?;
    let in_reach = |it: &Checkpoint| !args.redo || !is_change_of_turn(it);
    let wanted = checkpoints.into_iter().take_while(in_reach);
    let wanted = wanted.filter(is_wanted);
    let mut not_changed = None;
    for checkpoint in wanted.take(look_back) {
        let overwrite = args.overwrite.iter();
        let overwrite: Vec<String> = overwrite
            .map(|path| path_in(&checkpoint.cwd, &current, path))
            .collect();
        let params = ThreadCheckpointPreviewParams {
            thread_id: thread,
            checkpoint_id: checkpoint.id.clone(),
            overwrite: Some(overwrite.clone()),
        };
        let preview = client.call::<methods::ThreadCheckpointPreview>(params);
        let preview = match preview.await {
            Err(error) if error.info() == Some(PATH_NOT_CHANGED) => {
                not_changed = Some(error);
                continue;
            }
            preview => preview?,
        };
        if !preview.restored.is_empty() || !preview.conflicts.is_empty() {
            return Ok(Some(Choice {
                checkpoint,
                preview,
                overwrite,
            }));
        }
    }
    match not_changed {
        Some(error) => Err(error.into()),
        None => Ok(None),
    }
}

/// Leaves out the checkpoints that a later restore reversed, and those restores of which another one
/// was reversed. A restore reverses those of its own folder. All are newest first.
pub(crate) fn not_reversed(checkpoints: Vec<Checkpoint>) -> Vec<Checkpoint> {
    let mut rest = Vec::new();
    let mut reversed_until: HashMap<String, String> = HashMap::new();
    for checkpoint in checkpoints {
        if let Some(oldest) = reversed_until.get(&checkpoint.cwd) {
            if *oldest == checkpoint.id {
                reversed_until.remove(&checkpoint.cwd);
            }
            continue;
        }
        if let Some(oldest) = &checkpoint.restored_checkpoint_id {
            reversed_until.insert(checkpoint.cwd.clone(), oldest.clone());
        }
        rest.push(checkpoint);
    }
    rest
}

/// Returns all checkpoints of a thread, newest first.
pub(crate) async fn checkpoints(client: &Client, thread: ThreadId) -> Result<Vec<Checkpoint>> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let params = ThreadCheckpointListParams {
            thread_id: thread,
            cursor,
            limit: Some(PAGE),
        };
        let page = client.call::<methods::ThreadCheckpointList>(params).await?;
        all.extend(page.data);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Whether a checkpoint is that of a turn that changed files.
pub(crate) fn is_change_of_turn(checkpoint: &Checkpoint) -> bool {
    checkpoint.turn_id.is_some() && checkpoint.changed_files > 0
}

/// Returns the path relative to the folder of a checkpoint. The user gives it relative to the
/// current folder.
fn path_in(folder: &str, current: &Path, path: &str) -> String {
    let absolute = plain_path(&current.join(path).to_string_lossy());
    let relative = Path::new(&absolute).strip_prefix(plain_path(folder));
    relative.map_or_else(
        |_| path.to_owned(),
        |relative| relative.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the checkpoints, oldest first, those of another folder with `/`, a restore with the
    /// checkpoint that it reversed, and those that are left, newest first.
    #[test]
    fn reversed_checkpoints_are_left_out() {
        for (all, expected) in [
            ("1 2", "2 1"),
            ("1 2 3=2", "3 1"),
            ("1 2 3=2 4=1", "4"),
            ("1 2 3=2 4=3", "4 2 1"),
            ("1 2 3=2 4=3 5=2", "5 1"),
            ("1 2 3=1 4 5=4", "5 3"),
            ("1 /2 3 /4=/2", "/4 3 1"),
            ("1 /2 3 4=1", "4 /2"),
        ] {
            let checkpoints = all.split(' ').rev().map(|it| {
                let (id, restored) = it.split_once('=').unzip();
                Checkpoint {
                    id: id.unwrap_or(it).to_owned(),
                    turn_id: None,
                    restored_checkpoint_id: restored.map(str::to_owned),
                    created_at: 0,
                    cwd: it.chars().take_while(|it| *it == '/').collect(),
                    changed_files: 1,
                    state: raddle_protocol::CheckpointState::Complete,
                    gaps: Vec::new(),
                }
            });
            let left: Vec<String> = not_reversed(checkpoints.collect())
                .into_iter()
                .map(|it| it.id)
                .collect();
            assert_eq!(left.join(" "), expected, "{all}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_checkpoint() {
        for (current, path, expected) in [
            ("/w", "a", "a"),
            ("/w/b", "a", "b/a"),
            ("/w/b", "../a", "a"),
            ("/w", "/w/b/a", "b/a"),
            // Nothing below the folder: the server finds no such file.
            ("/w", "/v/a", "/v/a"),
            ("/v", "a", "a"),
        ] {
            let found = path_in("/w", Path::new(current), path);
            assert_eq!(found, expected, "{current} {path}");
        }
    }
}
