//! Checkpoints of the files that turns change.

use std::fmt;

use super::BoxFuture;
use crate::{ThreadId, Timestamp, TurnId};

/// The file changes of each turn, and restoring them. The changes are kept where the files are, not
/// in the journal.
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// Returns the checkpoints of a thread, oldest first.
    fn list(&self, thread: ThreadId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>>;

    /// Returns what restoring the files would do. It changes nothing.
    fn preview(
        &self,
        thread: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>>;

    /// Restores the files, all of them or none. The state before is a new checkpoint.
    fn restore(
        &self,
        thread: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>>;

    /// Returns the changes of these checkpoints together.
    fn diff(
        &self,
        thread: ThreadId,
        range: CheckpointRange,
    ) -> BoxFuture<'_, Result<CheckpointDiff, CheckpointError>>;

    /// Removes the checkpoints of a deleted thread.
    fn forget(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), CheckpointError>>;
}

/// The changes of one turn or of one restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Id, unique in the thread.
    pub id: String,
    /// The turn; absent for a restore.
    pub turn: Option<TurnId>,
    /// The checkpoint before which a restore returned the files; absent for a turn.
    pub restored: Option<String>,
    /// Time at which the first change could happen.
    pub taken_at: Timestamp,
    /// The workspace.
    pub folder: String,
    /// Number of changed files.
    pub files: u64,
    /// State of the checkpoint.
    pub state: CheckpointState,
    /// Paths that it does not cover, with the reason; the list may be truncated.
    pub gaps: Vec<CheckpointGap>,
}

/// State of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointState {
    /// All changes are known.
    Complete,
    /// A tool of the turn is running.
    Open,
    /// The server died while a tool ran. The changes since then have no known author.
    Interrupted,
    /// The stored files were removed by age or size; the changes cannot be restored.
    Expired,
}

/// A path that a checkpoint does not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointGap {
    /// The file or folder, relative to the workspace; absent for the workspace itself.
    pub path: Option<String>,
    /// The reason.
    pub reason: String,
}

/// Checkpoints whose changes are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointRange {
    /// The checkpoint of one turn.
    Turn(TurnId),
    /// All checkpoints from the first id, or the first of the thread, up to the second id, or the
    /// newest.
    Between {
        /// First checkpoint.
        from: Option<String>,
        /// Last checkpoint.
        to: Option<String>,
    },
}

/// A request to restore files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreFiles {
    /// The files return to their state before this checkpoint, and so before all later ones.
    pub checkpoint: String,
    /// Paths that are restored although they changed since.
    pub overwrite: Vec<String>,
}

/// Files that a restore changes or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRestore {
    /// Files that are restored.
    pub restored: Vec<RestoredFile>,
    /// Files that the user or another program changed since. They stay as they are.
    pub conflicts: Vec<FileConflict>,
    /// Checkpoint of the state before; absent in a preview, and if nothing was restored.
    pub checkpoint: Option<String>,
}

/// A file that a restore changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFile {
    /// Path, relative to the workspace.
    pub path: String,
    /// Effect of the restore.
    pub effect: RestoreEffect,
}

/// Effect of a restore on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreEffect {
    /// The file is created again.
    Created,
    /// The file gets its earlier content, mode or kind.
    Changed,
    /// The file is removed.
    Deleted,
}

/// A file that changed since the agent left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConflict {
    /// Path, relative to the workspace.
    pub path: String,
    /// SHA-256 of the content to which it would return; absent if the file would be absent.
    pub before: Option<String>,
    /// SHA-256 of the content that the agent left.
    pub known: Option<String>,
    /// SHA-256 of the content now.
    pub now: Option<String>,
    /// Reason for the conflict.
    pub reason: ConflictReason,
}

/// Reason for a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The file changed since.
    Changed,
    /// The author of the change is not known: the server died, or another thread worked in the
    /// same folder at the same time.
    AuthorUnknown,
    /// Git runs or reads the file, and the sandbox lets no command write it.
    ControlsGit,
}

/// The changes of some checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointDiff {
    /// The diff as text, for `git apply`. Bytes that are not UTF-8 are replaced.
    pub unified: String,
    /// The changed files.
    pub files: Vec<FileDiff>,
    /// Paths that are not covered; the list may be truncated.
    pub gaps: Vec<CheckpointGap>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Identifies the change: paths, kinds, modes and contents.
    pub id: String,
    /// Path after the change, or before it if the file was deleted; relative to the workspace.
    pub path: String,
    /// Path before the change, if the file was renamed.
    pub previous_path: Option<String>,
    /// Kind of the change.
    pub kind: FileDiffKind,
    /// Mode before, in octal digits as git prints it.
    pub mode_before: Option<String>,
    /// Mode after, in octal digits as git prints it.
    pub mode_after: Option<String>,
    /// SHA-256 of the content before, to which the hunks apply.
    pub base: Option<String>,
    /// SHA-256 of the content after.
    pub result: Option<String>,
    /// Form of the change of the content.
    pub content: FileDiffContent,
    /// Author of the change.
    pub author: ChangeAuthor,
}

/// Kind of a file's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileDiffKind {
    /// The path is new.
    Added,
    /// The path is gone.
    Deleted,
    /// The content is another.
    Modified,
    /// The path is another.
    Renamed,
    /// The mode alone is another.
    ModeChanged,
    /// A file became a link, or a link a file.
    TypeChanged,
}

/// Form of the change of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileDiffContent {
    /// The content is the same.
    Same,
    /// A text with these hunks.
    Text(Vec<DiffHunk>),
    /// At least one side is no text.
    Binary,
    /// At least one side is too large to show.
    Omitted,
}

/// A hunk of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHunk {
    /// Id. It depends on the path, the lines and their neighbours, not on the line number.
    pub id: String,
    /// Number of the first replaced line, from one.
    pub old_start: u32,
    /// The replaced lines, with their line ends.
    pub old_text: String,
    /// Number of the first new line, from one.
    pub new_start: u32,
    /// The new lines, with their line ends.
    pub new_text: String,
}

/// Author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAuthor {
    /// A tool of the agent that names the files it writes.
    Agent,
    /// A command or another program that the agent ran, while it ran.
    Tool,
    /// The author is not known.
    Unknown,
}

/// Failure of an operation on checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The thread has no such checkpoint.
    #[error("no such checkpoint: pass an id that thread/checkpoint/list returned")]
    NoSuchCheckpoint,
    /// No checkpoint belongs to the turn.
    #[error(
        "no checkpoint is stored for this turn: it changed no files, or checkpoints did not cover \
         it (switched off, a fork, the home folder)"
    )]
    NoCheckpointOfTurn,
    /// The checkpoints are in different folders.
    #[error(
        "the checkpoints are in different folders, {0} and {1}: choose those of one folder, the \
         later ones first"
    )]
    OtherFolder(String, String),
    /// A path to overwrite that the checkpoints did not change.
    #[error(
        "no file to overwrite: `{0}` is none that the checkpoints changed; name one that the \
         preview lists as a conflict"
    )]
    NotChanged(String),
    /// The stored files are gone.
    #[error("the checkpoint has expired: its files were removed from the store by age or size")]
    Expired,
    /// A command or a tool runs in the folder.
    #[error("{0}")]
    Busy(String),
    /// The disk or the store failed.
    #[error("{0}")]
    Failed(String),
    /// The server keeps no checkpoints.
    #[error("checkpoints are switched off: set checkpoints.enabled to true in config.toml")]
    Disabled,
}

/// No checkpoints: each list is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCheckpoints;

impl Checkpoints for NoCheckpoints {
    fn list(&self, _: ThreadId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn preview(
        &self,
        _: ThreadId,
        _: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        Box::pin(std::future::ready(Err(CheckpointError::Disabled)))
    }

    fn restore(
        &self,
        _: ThreadId,
        _: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        Box::pin(std::future::ready(Err(CheckpointError::Disabled)))
    }

    fn diff(
        &self,
        _: ThreadId,
        _: CheckpointRange,
    ) -> BoxFuture<'_, Result<CheckpointDiff, CheckpointError>> {
        Box::pin(std::future::ready(Err(CheckpointError::Disabled)))
    }

    fn forget(&self, _: ThreadId) -> BoxFuture<'_, Result<(), CheckpointError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
