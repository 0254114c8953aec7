//! Conversion of checkpoints, restores and diffs into their form on the wire.

use raddle_core::ports::{
    self as core, ChangeAuthor, CheckpointDiff, CheckpointState, ConflictReason, FileDiffContent,
    FileDiffKind, FileRestore, RestoreEffect,
};
use raddle_protocol as wire;

pub(crate) fn checkpoint(it: &core::Checkpoint) -> wire::Checkpoint {
    wire::Checkpoint {
        id: it.id.clone(),
        turn_id: it.turn.clone(),
        restored_checkpoint_id: it.restored.clone(),
        created_at: it.taken_at.seconds(),
        cwd: it.folder.clone(),
        changed_files: it.files,
        state: match it.state {
            CheckpointState::Complete => wire::CheckpointState::Complete,
            CheckpointState::Open => wire::CheckpointState::Open,
            CheckpointState::Interrupted => wire::CheckpointState::Interrupted,
            CheckpointState::Expired => wire::CheckpointState::Expired,
        },
        gaps: it.gaps.iter().cloned().map(gap).collect(),
    }
}

fn gap(it: core::CheckpointGap) -> wire::CheckpointGap {
    wire::CheckpointGap {
        path: it.path,
        reason: it.reason,
    }
}

pub(crate) fn restored(restore: &FileRestore) -> Vec<wire::RestoredFile> {
    let files = restore.restored.iter().map(|it| wire::RestoredFile {
        path: it.path.clone(),
        effect: match it.effect {
            RestoreEffect::Created => wire::RestoreEffect::Created,
            RestoreEffect::Changed => wire::RestoreEffect::Changed,
            RestoreEffect::Deleted => wire::RestoreEffect::Deleted,
        },
    });
    files.collect()
}

pub(crate) fn conflicts(restore: &FileRestore) -> Vec<wire::FileConflict> {
    file_conflicts(&restore.conflicts)
}

pub(crate) fn file_conflicts(conflicts: &[core::FileConflict]) -> Vec<wire::FileConflict> {
    let files = conflicts.iter().map(|it| wire::FileConflict {
        path: it.path.clone(),
        base_hash: it.before.clone(),
        result_hash: it.known.clone(),
        current_hash: it.now.clone(),
        reason: match it.reason {
            ConflictReason::Changed => wire::FileConflictReason::Changed,
            ConflictReason::AuthorUnknown => wire::FileConflictReason::AuthorUnknown,
            ConflictReason::ControlsGit => wire::FileConflictReason::ControlsGit,
        },
    });
    files.collect()
}

pub(crate) fn overlap(it: core::CopyOverlap) -> wire::WorkspaceOverlap {
    wire::WorkspaceOverlap {
        thread_id: it.thread,
        paths: it.paths,
    }
}

pub(crate) fn diff(it: CheckpointDiff) -> wire::WorkspaceDiff {
    wire::WorkspaceDiff {
        unified: it.unified,
        files: it.files.into_iter().map(file).collect(),
        gaps: it.gaps.into_iter().map(gap).collect(),
    }
}

fn file(it: core::FileDiff) -> wire::FileDiff {
    let (content, hunks) = match it.content {
        FileDiffContent::Same => (wire::FileDiffContent::Same, Vec::new()),
        FileDiffContent::Text(hunks) => (wire::FileDiffContent::Text, hunks),
        FileDiffContent::Binary => (wire::FileDiffContent::Binary, Vec::new()),
        FileDiffContent::Omitted => (wire::FileDiffContent::Omitted, Vec::new()),
    };
    wire::FileDiff {
        change_id: it.id,
        path: it.path,
        previous_path: it.previous_path,
        kind: match it.kind {
            FileDiffKind::Added => wire::FileDiffKind::Added,
            FileDiffKind::Deleted => wire::FileDiffKind::Deleted,
            FileDiffKind::Modified => wire::FileDiffKind::Modified,
            FileDiffKind::Renamed => wire::FileDiffKind::Renamed,
            FileDiffKind::ModeChanged => wire::FileDiffKind::ModeChanged,
            FileDiffKind::TypeChanged => wire::FileDiffKind::TypeChanged,
        },
        old_mode: it.mode_before,
        new_mode: it.mode_after,
        base_hash: it.base,
        result_hash: it.result,
        content,
        hunks: hunks.into_iter().map(hunk).collect(),
        author: match it.author {
            ChangeAuthor::Agent => wire::ChangeAuthor::Agent,
            ChangeAuthor::Tool => wire::ChangeAuthor::Tool,
            ChangeAuthor::Unknown => wire::ChangeAuthor::Unknown,
        },
    }
}

fn hunk(it: core::DiffHunk) -> wire::DiffHunk {
    wire::DiffHunk {
        id: it.id,
        old_start: it.old_start,
        old_lines: lines(&it.old_text),
        new_start: it.new_start,
        new_lines: lines(&it.new_text),
        old_text: it.old_text,
        new_text: it.new_text,
    }
}

/// Returns the number of lines; the last one may lack its line end.
fn lines(text: &str) -> u32 {
    u32::try_from(text.split_inclusive('\n').count()).unwrap_or(u32::MAX)
}
