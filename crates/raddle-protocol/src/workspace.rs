//! The folder in which a thread works, and applying the changes of a copy. An addition of Raddle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

open_enum! {
    /// Folder in which the agent of a thread works.
    pub enum WorkspaceMode or Shared {
        /// The folder that the client names.
        Shared = "shared",
        /// A copy of that folder, or of the repository around it. Nothing in the folder changes
        /// before `thread/workspace/apply`.
        Copy = "copy",
    }
}

/// Params of `thread/workspace/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadWorkspaceReadParams {
    /// Thread whose workspace is read.
    pub thread_id: ThreadId,
}

/// Result of `thread/workspace/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadWorkspaceReadResponse {
    /// Folder in which the agent works.
    pub mode: WorkspaceMode,
    /// Absolute path of the copy; null without one.
    pub folder: Option<String>,
    /// Absolute path of the folder that was copied; null without a copy.
    pub origin: Option<String>,
    /// Changes of the copy that its origin does not have. Ignored files are not among them.
    pub diff: WorkspaceDiff,
    /// Changed files that changed in the origin too since they were copied.
    pub conflicts: Vec<FileConflict>,
    /// Other threads that changed the same files in copies of the same origin; empty for observers.
    pub overlaps: Vec<WorkspaceOverlap>,
}

/// Files that two threads changed, each in its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceOverlap {
    /// The thread for which the other copy was made.
    pub thread_id: ThreadId,
    /// Paths of the files, relative to the origin.
    pub paths: Vec<String>,
}

/// Params of `thread/workspace/apply`, which applies changes of the copy to its origin: all or none
/// of the requested ones, except conflicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadWorkspaceApplyParams {
    /// Thread with the copy.
    pub thread_id: ThreadId,
    /// Changes to apply; null applies all.
    pub files: Option<Vec<FileToApply>>,
    /// Paths, relative to the origin, to apply although they changed there too; null names none.
    pub overwrite: Option<Vec<String>>,
}

/// A file whose change is applied, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileToApply {
    /// Path as in the diff of `thread/workspace/read`.
    pub path: String,
    /// The `changeId` that the diff had. If the change is another one now, the request is rejected
    /// and nothing is applied. Null accepts any change of the path.
    pub change_id: Option<String>,
    /// Hunks to apply; null applies the whole change.
    pub hunks: Option<Vec<HunkToApply>>,
}

/// A hunk that is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HunkToApply {
    /// Id of the hunk.
    pub id: String,
    /// Text to write in place of the new lines of the hunk; null writes these.
    pub replacement: Option<String>,
}

/// Result of `thread/workspace/apply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadWorkspaceApplyResponse {
    /// Files of the origin that were written or deleted.
    pub applied: Vec<RestoredFile>,
    /// Files that changed in the origin too. They stay as they are.
    pub conflicts: Vec<FileConflict>,
    /// Checkpoint of the origin before, to undo this with `thread/checkpoint/restore`; null if
    /// nothing was applied.
    pub checkpoint_id: Option<String>,
}
