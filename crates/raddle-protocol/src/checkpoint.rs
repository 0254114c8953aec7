//! Checkpoints: the file changes of each turn, and restoring them. An addition of Raddle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/checkpoint/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointListParams {
    /// Thread of the checkpoints.
    pub thread_id: ThreadId,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of checkpoints on the page; null means 25.
    pub limit: Option<u32>,
}

/// Result of `thread/checkpoint/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointListResponse {
    /// One page of checkpoints, newest first.
    pub data: Vec<Checkpoint>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `thread/checkpoint/preview`, which returns what a restore would do and changes
/// nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointPreviewParams {
    /// Thread of the checkpoint.
    pub thread_id: ThreadId,
    /// The files would return to their state before this checkpoint, and so before all later ones.
    pub checkpoint_id: String,
    /// Paths, relative to the folder of the checkpoint, that would be restored although they
    /// changed since; null names none.
    pub overwrite: Option<Vec<String>>,
}

/// Result of `thread/checkpoint/preview`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointPreviewResponse {
    /// Files that would be restored.
    pub restored: Vec<RestoredFile>,
    /// Files that changed since and would stay as they are.
    pub conflicts: Vec<FileConflict>,
}

/// Params of `thread/checkpoint/restore`. A running turn is interrupted first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointRestoreParams {
    /// Thread of the checkpoint.
    pub thread_id: ThreadId,
    /// The thread returns to its state before this checkpoint, and so before all later ones.
    pub checkpoint_id: String,
    /// Parts of the thread that return to that state.
    pub what: RestoreScope,
    /// Paths, relative to the folder of the checkpoint, to restore although they changed since;
    /// null names none.
    pub overwrite: Option<Vec<String>>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/checkpoint/restore`. If the conversation was reverted, `thread/reverted`
/// follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCheckpointRestoreResponse {
    /// Files that were restored.
    pub restored: Vec<RestoredFile>,
    /// Files that changed since. They stay as they are.
    pub conflicts: Vec<FileConflict>,
    /// Checkpoint of the state before the restore, to undo it; null if no file was restored.
    pub checkpoint_id: Option<String>,
    /// The reverted thread, without turns; null if the conversation was not reverted.
    pub thread: Option<Thread>,
}

/// Params of `turn/diff/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffReadParams {
    /// Thread of the turn.
    pub thread_id: ThreadId,
    /// Turn whose changes are read.
    pub turn_id: TurnId,
}

/// Result of `turn/diff/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffReadResponse {
    /// Changes of the turn.
    pub diff: WorkspaceDiff,
}

/// Params of `thread/diff/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDiffReadParams {
    /// Thread of the checkpoints.
    pub thread_id: ThreadId,
    /// First checkpoint whose changes are included; null means the first of the thread.
    pub from: Option<String>,
    /// Last checkpoint whose changes are included; null means the newest.
    pub to: Option<String>,
}

/// Result of `thread/diff/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDiffReadResponse {
    /// Changes of these checkpoints together.
    pub diff: WorkspaceDiff,
}

/// The file changes of one turn or of one restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Id, unique in the thread.
    pub id: String,
    /// Turn that made the changes; null for a restore.
    pub turn_id: Option<TurnId>,
    /// Checkpoint before which a restore returned the files; null for a turn.
    pub restored_checkpoint_id: Option<String>,
    /// Time at which the first change could happen, in seconds since the epoch.
    pub created_at: i64,
    /// Absolute path of the folder with the files.
    pub cwd: String,
    /// Number of changed files.
    pub changed_files: u64,
    /// State of the checkpoint.
    pub state: CheckpointState,
    /// Paths that it does not cover; the list may be truncated.
    pub gaps: Vec<CheckpointGap>,
}

open_enum! {
    /// State of a checkpoint.
    pub enum CheckpointState {
        /// All changes are known.
        Complete = "complete",
        /// A tool of the turn is running.
        Open = "open",
        /// The server died while a tool ran. The changes since then have no known author.
        Interrupted = "interrupted",
        /// The stored files were removed by age or size; the changes cannot be restored.
        Expired = "expired",
    }
}

/// A path that a checkpoint does not cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointGap {
    /// File or folder, relative to the folder of the checkpoint; null means that folder itself.
    pub path: Option<String>,
    /// Reason why it is not covered.
    pub reason: String,
}

open_enum! {
    /// Parts of a thread that return to an earlier state.
    pub enum RestoreScope {
        /// The conversation; files stay as they are.
        Conversation = "conversation",
        /// The files; the conversation stays as it is.
        Files = "files",
        /// First the files, then the conversation.
        Both = "both",
    }
}

/// A file that a restore changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredFile {
    /// Path, relative to the folder of the checkpoint.
    pub path: String,
    /// Effect of the restore on the file.
    pub effect: RestoreEffect,
}

open_enum! {
    /// Effect of a restore on a file.
    pub enum RestoreEffect {
        /// The file is created again.
        Created = "created",
        /// The file gets its earlier content, mode or kind.
        Changed = "changed",
        /// The file is removed.
        Deleted = "deleted",
    }
}

/// A file that changed since the agent left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileConflict {
    /// Path, relative to the folder of the checkpoint.
    pub path: String,
    /// SHA-256 of the content to which it would return; null if the file would be absent.
    pub base_hash: Option<String>,
    /// SHA-256 of the content that the agent left; null if the file was absent.
    pub result_hash: Option<String>,
    /// SHA-256 of the current content; null if the file is absent.
    pub current_hash: Option<String>,
    /// Reason for the conflict.
    pub reason: FileConflictReason,
}

open_enum! {
    /// Reason for a conflict.
    pub enum FileConflictReason {
        /// The file changed since.
        Changed = "changed",
        /// The author of the change is not known: the server died, or another thread worked in the
        /// same folder at the same time.
        AuthorUnknown = "authorUnknown",
        /// Git runs or reads the file, such as a hook, and the sandbox lets no command write it.
        ControlsGit = "controlsGit",
    }
}

/// Changes of files in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceDiff {
    /// Unified diff for `git apply`. Bytes that are not UTF-8 are replaced.
    pub unified: String,
    /// The changed files.
    pub files: Vec<FileDiff>,
    /// Paths that the diff does not cover; the list may be truncated.
    pub gaps: Vec<CheckpointGap>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// Identifies the change: another path, mode, kind or content is another change.
    pub change_id: String,
    /// Path after the change, or before it if the file was deleted; relative to the folder.
    pub path: String,
    /// Path before the change; null unless the file was renamed.
    pub previous_path: Option<String>,
    /// Kind of the change.
    pub kind: FileDiffKind,
    /// Mode before the change, in octal digits as git prints it; null if the file was absent.
    pub old_mode: Option<String>,
    /// Mode after the change, in octal digits as git prints it; null if the file is absent.
    pub new_mode: Option<String>,
    /// SHA-256 of the content before the change, to which the hunks apply; null if there was none.
    pub base_hash: Option<String>,
    /// SHA-256 of the content after the change; null if there is none.
    pub result_hash: Option<String>,
    /// Form of the change of the content.
    pub content: FileDiffContent,
    /// Hunks of a text, in the order of its lines; empty for the other forms.
    pub hunks: Vec<DiffHunk>,
    /// Author of the change.
    pub author: ChangeAuthor,
}

open_enum! {
    /// Kind of a file's change.
    pub enum FileDiffKind {
        /// The path is new.
        Added = "added",
        /// The path is gone.
        Deleted = "deleted",
        /// The content is another.
        Modified = "modified",
        /// The path is another.
        Renamed = "renamed",
        /// Only the mode is another.
        ModeChanged = "modeChanged",
        /// A file became a symbolic link, or a symbolic link a file.
        TypeChanged = "typeChanged",
    }
}

open_enum! {
    /// Form of the change of a file's content.
    pub enum FileDiffContent {
        /// The content is the same.
        Same = "same",
        /// A text with hunks.
        Text = "text",
        /// At least one side is no text.
        Binary = "binary",
        /// At least one side is too large to show.
        Omitted = "omitted",
    }
}

/// A hunk of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// Id. It depends on the path, the lines and their neighbours, not on the line number.
    pub id: String,
    /// Number of the first replaced line, from 1.
    pub old_start: u32,
    /// Number of replaced lines.
    pub old_lines: u32,
    /// Number of the first new line, from 1.
    pub new_start: u32,
    /// Number of new lines.
    pub new_lines: u32,
    /// The replaced lines, with their line ends.
    pub old_text: String,
    /// The new lines, with their line ends.
    pub new_text: String,
}

open_enum! {
    /// Author of a change.
    pub enum ChangeAuthor {
        /// A tool of the agent that names the files that it writes.
        Agent = "agent",
        /// A command or another program that the agent ran, while it ran.
        Tool = "tool",
        /// The author is not known.
        Unknown = "unknown",
    }
}
