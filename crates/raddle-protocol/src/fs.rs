//! Files on the server's machine, read and changed on behalf of the client. Paths are absolute and
//! no sandbox applies. Errors of the operating system are returned as internal errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `fs/readFile`. Only regular files are read, and only if the response fits into 32 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileParams {
    /// Absolute path of the file.
    pub path: String,
}

/// Result of `fs/readFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileResponse {
    /// Complete content of the file in base64.
    pub data_base64: String,
}

/// Params of `fs/writeFile`, which creates a file or replaces its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// New content of the file in base64.
    pub data_base64: String,
    /// Absolute path of the file.
    pub path: String,
}

/// Result of `fs/writeFile`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWriteFileResponse {}

/// Params of `fs/createDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// Absolute path of the directory to create.
    pub path: String,
    /// Creates missing parent directories too. Null means true.
    pub recursive: Option<bool>,
}

/// Result of `fs/createDirectory`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCreateDirectoryResponse {}

/// Params of `fs/getMetadata`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataParams {
    /// Absolute path of the file or directory.
    pub path: String,
}

/// Result of `fs/getMetadata`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResponse {
    /// Creation time, in milliseconds since the epoch; 0 where the file system does not record it.
    pub created_at_ms: i64,
    /// Whether the path is a directory, following links.
    pub is_directory: bool,
    /// Whether the path is a regular file, following links.
    pub is_file: bool,
    /// Whether the path is a symbolic link, regardless of its target.
    pub is_symlink: bool,
    /// Modification time, in milliseconds since the epoch; 0 where the file system does not record
    /// it.
    pub modified_at_ms: i64,
}

/// Params of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryParams {
    /// Absolute path of the directory.
    pub path: String,
}

/// Result of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryResponse {
    /// Direct entries of the directory.
    pub entries: Vec<FsReadDirectoryEntry>,
}

/// Params of `fs/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// Absolute path of the file or directory.
    pub path: String,
    /// Succeeds if the path does not exist. Null means true.
    pub force: Option<bool>,
    /// Removes a directory with its contents. Null means true.
    pub recursive: Option<bool>,
}

/// Result of `fs/remove`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsRemoveResponse {}

/// Params of `fs/copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// Absolute path of the copy.
    pub destination_path: String,
    /// Absolute path of the source.
    pub source_path: String,
    /// Must be true to copy a directory; has no effect on a file. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub recursive: bool,
}

/// Result of `fs/copy`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCopyResponse {}

/// Params of `fs/watch`, which requests `fs/changed` notifications until `fs/unwatch` or
/// disconnection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchParams {
    /// Absolute path of the file or directory.
    pub path: String,
    /// Id of this watch, chosen by the client and unique on its connection; at most 256 bytes.
    pub watch_id: String,
}

/// Result of `fs/watch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchResponse {
    /// Path that is watched.
    pub path: String,
}

/// Params of `fs/unwatch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsUnwatchParams {
    /// Id of the watch to end, from `fs/watch`.
    pub watch_id: String,
}

/// Result of `fs/unwatch`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsUnwatchResponse {}

/// `fs/changed`: a watched path changed. Sent only to the connection that set the watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsChangedNotification {
    /// Absolute paths of the changed files and directories.
    pub changed_paths: Vec<String>,
    /// Id of the watch, from `fs/watch`.
    pub watch_id: String,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryEntry {
    /// File name without a path.
    pub file_name: String,
    /// Whether the entry is a directory, following links.
    pub is_directory: bool,
    /// Whether the entry is a regular file, following links.
    pub is_file: bool,
}
