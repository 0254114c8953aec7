//! Background terminals: commands of a thread that go on running after the agent has turned to other things.
//! Experimental API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/backgroundTerminals/clean`: ends all background terminals of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsCleanParams {
    /// The thread.
    pub thread_id: ThreadId,
}

/// Result of `thread/backgroundTerminals/clean`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadBackgroundTerminalsCleanResponse {}

/// Params of `thread/backgroundTerminals/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// Where to go on, from `nextCursor` of the page before; null starts at the beginning.
    pub cursor: Option<String>,
    /// The most entries to return; null lets the server choose.
    pub limit: Option<u32>,
}

/// Result of `thread/backgroundTerminals/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListResponse {
    /// One page of running terminals.
    pub data: Vec<ThreadBackgroundTerminal>,
    /// The cursor of the next page; null after the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/backgroundTerminals/terminate`: ends one background terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsTerminateParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The terminal to end, as `processId` of the list names it.
    pub process_id: String,
}

/// Result of `thread/backgroundTerminals/terminate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsTerminateResponse {
    /// True if the terminal was still running and has been ended.
    pub terminated: bool,
}

/// One command running in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminal {
    /// The command execution item that began it.
    pub item_id: ItemId,
    /// The server's name for the process; not the operating system's number.
    pub process_id: String,
    /// The command, quoted as for a shell.
    pub command: String,
    /// The folder it was started in.
    pub cwd: String,
    /// The share of a processor it uses, in per cent; null when not known.
    pub cpu_percent: Option<f64>,
    /// The operating system's process id; null when not known.
    pub os_pid: Option<u32>,
    /// Its resident memory, in kilobytes; null when not known.
    pub rss_kb: Option<u64>,
}
