//! Files on the server's machine, read and changed for the client.
//! Paths are absolute, no sandbox applies, and what the system refuses comes back as an internal error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `fs/readFile`. Only a regular file is read, and only if its answer fits into 32 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileParams {
    /// The file, as an absolute path.
    pub path: String,
}

/// Result of `fs/readFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileResponse {
    /// The whole file in base64.
    pub data_base64: String,
}

/// Params of `fs/writeFile`: create a file or replace what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// The new contents in base64.
    pub data_base64: String,
    /// The file, as an absolute path.
    pub path: String,
}

/// Result of `fs/writeFile`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWriteFileResponse {}

/// Params of `fs/createDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// The directory to make, as an absolute path.
    pub path: String,
    /// Make missing parents too. Null means true.
    pub recursive: Option<bool>,
}

/// Result of `fs/createDirectory`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCreateDirectoryResponse {}

/// Params of `fs/getMetadata`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataParams {
    /// The file or directory, as an absolute path.
    pub path: String,
}

/// Result of `fs/getMetadata`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResponse {
    /// When it was made, in ms since the epoch; 0 where the file system does not say.
    pub created_at_ms: i64,
    /// Whether it is a directory, links followed.
    pub is_directory: bool,
    /// Whether it is a regular file, links followed.
    pub is_file: bool,
    /// True for a symbolic link, whatever it points to.
    pub is_symlink: bool,
    /// When it last changed, in ms since the epoch; 0 where the file system does not say.
    pub modified_at_ms: i64,
}

/// Params of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryParams {
    /// The directory, as an absolute path.
    pub path: String,
}

/// Result of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryResponse {
    /// What lies directly in the directory, not deeper.
    pub entries: Vec<FsReadDirectoryEntry>,
}

/// Params of `fs/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// The file or directory, as an absolute path.
    pub path: String,
    /// Succeed if nothing is there. Null means true.
    pub force: Option<bool>,
    /// Remove a directory with all it holds. Null means true.
    pub recursive: Option<bool>,
}

/// Result of `fs/remove`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsRemoveResponse {}

/// Params of `fs/copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// Where the copy goes, as an absolute path.
    pub destination_path: String,
    /// What to copy, as an absolute path.
    pub source_path: String,
    /// Must be true to copy a directory; makes no difference to a file. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub recursive: bool,
}

/// Result of `fs/copy`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCopyResponse {}

/// Params of `fs/watch`: be told of changes by `fs/changed` until `fs/unwatch` or disconnection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchParams {
    /// The file or directory, as an absolute path.
    pub path: String,
    /// The client's name for this watch, unique on its connection; at most 256 bytes.
    pub watch_id: String,
}

/// Result of `fs/watch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchResponse {
    /// The path in effect.
    pub path: String,
}

/// Params of `fs/unwatch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsUnwatchParams {
    /// The watch to end, as named in `fs/watch`.
    pub watch_id: String,
}

/// Result of `fs/unwatch`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsUnwatchResponse {}

/// `fs/changed`: something under a watch changed. Told only to the connection that set the watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsChangedNotification {
    /// The files and directories concerned, as absolute paths.
    pub changed_paths: Vec<String>,
    /// The watch, as named in `fs/watch`.
    pub watch_id: String,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryEntry {
    /// Its bare name, without a path.
    pub file_name: String,
    /// Whether it is a directory, links followed.
    pub is_directory: bool,
    /// Whether it is a regular file, links followed.
    pub is_file: bool,
}
