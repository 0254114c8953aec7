//! Snapshots of a workspace, their diffs and hunks, and restoring files.
//!
//! A [`Workspace`] reads one folder and keeps what it read in a store elsewhere. A [`Snapshot`] is
//! the state of that folder at one time. Two snapshots give a [`WorkspaceDiff`], the content of a
//! file and some of its hunks give a new content ([`apply_hunks`]), and a [`RestoreRequest`]
//! returns files to an earlier snapshot in one transaction.
//!
//! The crate runs no program and reads no configuration. It does not use git: a repository in the
//! folder is content like any other, except that folders named `.git` are left out. Nothing outside
//! the folder and the store is opened, and a symbolic link is content, never a way. A file that a
//! snapshot does not cover is listed in [`Snapshot::gaps`], with the reason.
//!
//! A caller takes a snapshot with [`Workspace::snapshot`] before and after each turn and around
//! each command. For a file tool that writes known paths, [`Workspace::update`] costs no walk.
//!
//! [`copy_folder`] makes a copy of a whole folder. [`Workspace::snapshot_of`] reads the copy into
//! the store of the original, so that changes of the copy can be restored there.
//!
//! Below: nothing of Raddle. Above: tools and the agent, which know threads and turns.

mod copy;
mod detached;
mod diff;
mod error;
mod hash;
mod hunks;
mod limits;
mod opened;
mod path;
mod prune;
mod restore;
mod scan;
mod snapshot;
mod store;
mod workspace;

pub use copy::{CopyLimits, copy_folder, remove_copy};
pub use diff::{
    Content, DiffLimits, FileChange, FileChangeKind, FileHunk, FileSide, PathChange, ProposedFile,
    WorkspaceDiff,
};
pub use error::Error;
pub use hash::ContentHash;
pub use hunks::{HunkChoice, HunkConflict, apply_hunks};
pub use limits::SnapshotLimits;
pub use path::WorkspacePath;
pub use prune::prune_store;
pub use restore::{
    Faults, NoFaults, RestoreConflict, RestoreOutcome, RestorePlan, RestoreRequest, RestoreStep,
};
pub use snapshot::{EntryKind, FileEntry, Gap, GapReason, Snapshot, SnapshotId};
pub use store::{PruneReport, RetentionLimits, StoredSnapshot, has_snapshot};
pub use workspace::Workspace;
