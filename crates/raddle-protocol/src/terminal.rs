//! Background terminals: commands of a thread that keep running while the agent continues with
//! other work. Experimental API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/backgroundTerminals/clean`, which terminates all background terminals of a
/// thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsCleanParams {
    /// Thread of the terminals.
    pub thread_id: ThreadId,
}

/// Result of `thread/backgroundTerminals/clean`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadBackgroundTerminalsCleanResponse {}

/// Params of `thread/backgroundTerminals/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListParams {
    /// Thread of the terminals.
    pub thread_id: ThreadId,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of entries on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `thread/backgroundTerminals/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListResponse {
    /// One page of running terminals.
    pub data: Vec<ThreadBackgroundTerminal>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `thread/backgroundTerminals/terminate`, which terminates one background terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsTerminateParams {
    /// Thread of the terminal.
    pub thread_id: ThreadId,
    /// The terminal to terminate, by `processId` of the list.
    pub process_id: String,
}

/// Result of `thread/backgroundTerminals/terminate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsTerminateResponse {
    /// Whether the terminal was still running and has been terminated.
    pub terminated: bool,
}

/// One command running in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminal {
    /// The command execution item that started the terminal.
    pub item_id: ItemId,
    /// Id of the process at the server; not the process id of the operating system.
    pub process_id: String,
    /// Command line, quoted for a shell.
    pub command: String,
    /// Directory in which the command was started.
    pub cwd: String,
    /// CPU usage in per cent; null when unknown.
    pub cpu_percent: Option<f64>,
    /// Process id of the operating system; null when unknown.
    pub os_pid: Option<u32>,
    /// Resident memory in kilobytes; null when unknown.
    pub rss_kb: Option<u64>,
}
