//! Checkpoints and their diffs in the form of the port.

use std::io;

use raddle_core::ThreadId;
use raddle_core::ports::{
    ChangeAuthor, Checkpoint, CheckpointDiff, CheckpointError, CheckpointGap, CheckpointRange,
    CheckpointState, DiffHunk, FileDiff, FileDiffContent, FileDiffKind,
};
use raddle_workspace::{
    Content, DiffLimits, EntryKind, Error, FileChange, FileChangeKind, FileHunk, FileSide, Gap,
    GapReason, WorkspaceDiff, has_snapshot,
};

use super::change_set::ChangeSet;
use super::log::{LogEntry, LogGap, LogState};
use super::restore::{check_one_folder, joined};
use super::{Inner, snapshot_id};

/// Limit: paths that a checkpoint or a diff names as not covered; beyond it, further ones are not
/// named.
const GAPS_MAX: usize = 100;

pub(super) fn failed(error: Error) -> CheckpointError {
    match error {
        Error::NoSnapshot(_) | Error::NoContent(_) => CheckpointError::Expired,
        error => CheckpointError::Failed(error.to_string()),
    }
}

pub(super) fn disk_failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(format!("the log of checkpoints: {error}"))
}

pub(super) fn checkpoint(inner: &Inner, entry: &LogEntry) -> Checkpoint {
    let store = inner.store_of(&entry.folder);
    let mut ids = [&entry.before, &entry.after].into_iter();
    let is_stored = ids.all(|it| snapshot_id(it).is_some_and(|it| has_snapshot(&store, it)));
    let state = match (is_stored, entry.state) {
        (false, _) => CheckpointState::Expired,
        (_, LogState::Open) => CheckpointState::Open,
        (_, LogState::Interrupted) => CheckpointState::Interrupted,
        (_, LogState::Complete) => CheckpointState::Complete,
    };
    let gaps = entry.gaps.iter().map(|it| CheckpointGap {
        path: it.path.clone(),
        reason: it.reason.clone(),
    });
    Checkpoint {
        id: entry.id.to_string(),
        turn: entry.turn.clone(),
        restored: entry.restored.map(|it| it.to_string()),
        taken_at: entry.at,
        folder: entry.folder.display().to_string(),
        files: entry.files,
        state,
        gaps: gaps.collect(),
    }
}

/// Returns the changes of some checkpoints.
pub(super) fn diff(
    inner: &Inner,
    thread: ThreadId,
    range: &CheckpointRange,
) -> Result<CheckpointDiff, CheckpointError> {
    let entries = in_range(inner.entries(thread)?, range)?;
    let Some(first) = entries.first() else {
        return Ok(CheckpointDiff::default());
    };
    check_one_folder(&entries)?;
    inner.with_folder(&first.folder, |folder| {
        let changes = joined(folder, &entries)?;
        let limits = DiffLimits::default();
        let diff = folder
            .workspace
            .diff_within(&changes.before, &changes.after, &limits);
        Ok(described(&diff.map_err(failed)?, &changes))
    })
}

fn in_range(
    entries: Vec<LogEntry>,
    range: &CheckpointRange,
) -> Result<Vec<LogEntry>, CheckpointError> {
    let place = |id: &str| {
        let place = entries.iter().position(|it| it.id.to_string() == *id);
        place.ok_or(CheckpointError::NoSuchCheckpoint)
    };
    Ok(match range {
        CheckpointRange::Turn(turn) => {
            let of_turn = entries.iter().filter(|it| it.turn.as_ref() == Some(turn));
            let entries: Vec<_> = of_turn.cloned().collect();
            if entries.is_empty() {
                return Err(CheckpointError::NoCheckpointOfTurn);
            }
            entries
        }
        CheckpointRange::Between { from, to } => {
            let start = from.as_deref().map_or(Ok(0), place)?;
            let end = to.as_deref().map(place).transpose()?;
            let end = end.map_or(entries.len(), |it| it + 1);
            let mut entries = entries.get(start..end).unwrap_or_default().to_vec();
            // Applying the changes of a copy repeats them in another folder.
            if entries.len() > 1 {
                entries.retain(|it| !it.is_applied);
            }
            entries
        }
    })
}

pub(super) fn described(diff: &WorkspaceDiff, changes: &ChangeSet) -> CheckpointDiff {
    CheckpointDiff {
        unified: String::from_utf8_lossy(&diff.unified()).into_owned(),
        files: diff.files.iter().map(|it| file(it, changes)).collect(),
        gaps: gaps(&diff.gaps),
    }
}

fn file(change: &FileChange, changes: &ChangeSet) -> FileDiff {
    let path = |side: &FileSide| side.path.to_string();
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let current = after.or(before);
    let is_in = |set: &std::collections::BTreeSet<_>| {
        let mut sides = [before, after].into_iter().flatten();
        sides.any(|it| set.contains(&it.path))
    };
    let author = if is_in(&changes.unknown) {
        ChangeAuthor::Unknown
    } else if is_in(&changes.by_agent) {
        ChangeAuthor::Agent
    } else {
        ChangeAuthor::Tool
    };
    FileDiff {
        id: change.id().to_string(),
        path: current.map(path).unwrap_or_default(),
        previous_path: (change.kind == FileChangeKind::Renamed)
            .then(|| before.map(path))
            .flatten(),
        kind: kind(change.kind),
        mode_before: before.map(mode),
        mode_after: after.map(mode),
        base: before.map(|it| it.entry.hash.to_string()),
        result: after.map(|it| it.entry.hash.to_string()),
        content: match &change.content {
            Content::Same => FileDiffContent::Same,
            Content::Text(hunks) => FileDiffContent::Text(hunks.iter().map(hunk).collect()),
            Content::Replaced | Content::Binary => FileDiffContent::Binary,
            Content::Omitted => FileDiffContent::Omitted,
        },
        author,
    }
}

fn kind(kind: FileChangeKind) -> FileDiffKind {
    match kind {
        FileChangeKind::Added => FileDiffKind::Added,
        FileChangeKind::Deleted => FileDiffKind::Deleted,
        FileChangeKind::Modified => FileDiffKind::Modified,
        FileChangeKind::Renamed => FileDiffKind::Renamed,
        FileChangeKind::ModeChanged => FileDiffKind::ModeChanged,
        FileChangeKind::TypeChanged => FileDiffKind::TypeChanged,
    }
}

fn mode(side: &FileSide) -> String {
    match side.entry.kind {
        EntryKind::Symlink => "120000".to_owned(),
        EntryKind::File | EntryKind::Folder => format!("100{:03o}", side.entry.mode),
    }
}

fn hunk(hunk: &FileHunk) -> DiffHunk {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    DiffHunk {
        id: hunk.id.clone(),
        old_start: hunk.before.start + 1,
        old_text: text(&hunk.old),
        new_start: hunk.after.start + 1,
        new_text: text(&hunk.new),
    }
}

pub(super) fn gaps(gaps: &[Gap]) -> Vec<CheckpointGap> {
    let named = logged_gaps(gaps).into_iter();
    let named = named.map(|LogGap { path, reason }| CheckpointGap { path, reason });
    named.collect()
}

/// Names the paths that are not covered against expectation: not ignored files, and not data of
/// repositories.
pub(super) fn logged_gaps(gaps: &[Gap]) -> Vec<LogGap> {
    let named = gaps.iter().filter_map(|gap| {
        let reason = match gap.reason {
            GapReason::Ignored
            | GapReason::Repository
            | GapReason::Store
            | GapReason::NotVisited => return None,
            GapReason::Special => "a pipe, a socket or a device",
            GapReason::OtherFileSystem => "on another file system",
            GapReason::Unreadable => "not readable",
            GapReason::TooLarge => "larger than the limit of one file",
            GapReason::TooMany => "beyond the limit of all files",
            GapReason::TooDeep => "nested too deeply",
        };
        Some(LogGap {
            path: gap.path.as_ref().map(ToString::to_string),
            reason: reason.to_owned(),
        })
    });
    named.take(GAPS_MAX).collect()
}
