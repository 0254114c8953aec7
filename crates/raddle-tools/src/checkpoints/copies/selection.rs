//! The part of the changes of a copy that the user chose.

use std::collections::{BTreeSet, HashMap, HashSet};

use raddle_core::ports::{ApplyChanges, CopyError, FileToApply, HunkToApply};
use raddle_workspace::{
    Content, ContentHash, FileChange, FileHunk, HunkChoice, HunkConflict, Snapshot, WorkspacePath,
    apply_hunks,
};

use super::{CopyState, failed};
use crate::checkpoints::tracked_folder::TrackedFolder;

/// The chosen changes.
pub(super) struct Target {
    /// The state with these changes.
    pub snapshot: Snapshot,
    /// The paths at which it is valid.
    pub paths: BTreeSet<WorkspacePath>,
    /// Those that get lines of the user, which neither side has.
    pub edited: BTreeSet<WorkspacePath>,
}

/// Returns the state to which the user's folder is brought.
pub(super) fn target(
    folder: &mut TrackedFolder,
    state: &CopyState,
    request: &ApplyChanges,
) -> Result<Target, CopyError> {
    let mut target = Target {
        snapshot: state.changes.after.clone(),
        paths: state.pending.clone(),
        edited: BTreeSet::new(),
    };
    let Some(chosen) = &request.files else {
        return Ok(target);
    };
    target.paths.clear();
    let diff = state.diff(folder)?;
    let mut by_name: HashMap<String, Vec<&FileChange>> = HashMap::new();
    for change in &diff.files {
        let name = name(change).unwrap_or_default();
        by_name.entry(name).or_default().push(change);
    }
    let mut seen = BTreeSet::new();
    for FileToApply {
        path,
        change: expected,
        hunks,
    } in chosen
    {
        let named = by_name.get(path).map_or(&[][..], |it| it);
        let change = *named.first().ok_or_else(|| not_changed(path))?;
        if named.len() > 1 || !seen.insert(path) {
            return Err(CopyError::NotChanged(format!(
                "`{path}` is the name of more than one change: apply all changes, or name it once"
            )));
        }
        let is_expected = |it: &String| *it == change.id().to_string();
        if !expected.as_ref().is_none_or(is_expected) {
            return Err(CopyError::NotChanged(format!(
                "the change of `{path}` is another one since it was read: read \
                 thread/workspace/read again"
            )));
        }
        let sides = [&change.before, &change.after].into_iter().flatten();
        let paths: BTreeSet<WorkspacePath> = sides.map(|it| it.path.clone()).collect();
        match hunks.as_deref() {
            None => target.paths.extend(paths),
            Some([]) => {}
            Some(hunks) => {
                if has_other_lines(change, hunks) {
                    target.edited.extend(paths.iter().cloned());
                }
                target.paths.extend(paths);
                target.snapshot = with_hunks(folder, state, &target.snapshot, change, hunks)?;
            }
        }
    }
    Ok(target)
}

/// Returns the name by which a change is chosen, which is that in the diff.
fn name(change: &FileChange) -> Option<String> {
    let side = change.after.as_ref().or(change.before.as_ref());
    side.map(|it| it.path.to_string())
}

/// Whether a replacement has lines that are neither among the old nor among the new ones of its hunk.
/// One that has not is a part of the hunk.
fn has_other_lines(change: &FileChange, chosen: &[HunkToApply]) -> bool {
    let Content::Text(hunks) = &change.content else {
        return false;
    };
    chosen.iter().any(|it| {
        let (Some(text), Some(hunk)) =
            (&it.replacement, hunks.iter().find(|hunk| hunk.id == it.id))
        else {
            return false;
        };
        let sides = [&hunk.old, &hunk.new].into_iter();
        let known: HashSet<&[u8]> = sides.flat_map(|it| it.split(|it| *it == b'\n')).collect();
        text.split('\n')
            .any(|it| !it.is_empty() && !known.contains(it.as_bytes()))
    })
}

/// Returns a state with a part of a change.
fn with_hunks(
    folder: &mut TrackedFolder,
    state: &CopyState,
    target: &Snapshot,
    change: &FileChange,
    hunks: &[HunkToApply],
) -> Result<Snapshot, CopyError> {
    let choices = hunks.iter().map(|it| HunkChoice {
        id: it.id.clone(),
        replacement: it.replacement.clone().map(String::into_bytes),
    });
    let choices: Vec<HunkChoice> = choices.collect();
    let base = match &change.before {
        Some(side) => {
            let content = folder.workspace.content(&side.entry.hash);
            content.map_err(failed)?
        }
        None => Vec::new(),
    };
    let named = || name(change).unwrap_or_default();
    let is_replaced = hunks.iter().any(|it| it.replacement.is_some());
    let is_text = |it: &FileHunk| {
        [&it.old, &it.new]
            .iter()
            .all(|it| str::from_utf8(it).is_ok())
    };
    if let Content::Text(all) = &change.content
        && is_replaced
        && !all.iter().all(is_text)
    {
        // The client saw other bytes than those of the file.
        return Err(CopyError::NotChanged(format!(
            "`{}` is not UTF-8: its hunks cannot have another text",
            named()
        )));
    }
    let content = apply_hunks(&base, change, &choices).map_err(|error| {
        let path = named();
        CopyError::NotChanged(match error {
            HunkConflict::NoHunks => {
                format!("`{path}` can only be applied as a whole: leave out its `hunks`")
            }
            error => format!(
                "{error} in `{path}`: name each hunk once, by an id of thread/workspace/read"
            ),
        })
    })?;
    // A deleted file of which a part stays has its place and mode from before.
    let (path, target) = match (&change.before, &change.after) {
        (_, Some(after)) => (&after.path, target.clone()),
        (Some(before), None) => {
            if is_deleted(&content, change) {
                return Ok(target.clone());
            }
            let paths = BTreeSet::from([before.path.clone()]);
            (
                &before.path,
                target.with_paths_of(&state.changes.before, &paths),
            )
        }
        (None, None) => return Ok(target.clone()),
    };
    let changed = folder.workspace.with_content(&target, path, &content);
    // Anything else than a part of a file would be more than the user chose.
    changed
        .map_err(failed)?
        .ok_or_else(|| not_changed(&named()))
}

/// Whether all hunks of a deletion were chosen.
fn is_deleted(content: &[u8], change: &FileChange) -> bool {
    change.after.is_none() && ContentHash::of(content) == ContentHash::of(b"")
}

pub(super) fn not_changed(path: &str) -> CopyError {
    CopyError::NotChanged(format!(
        "`{path}` has no change to apply: name a path of thread/workspace/read"
    ))
}
