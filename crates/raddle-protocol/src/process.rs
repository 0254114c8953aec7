//! Processes that a client runs on the server's machine without a sandbox. Experimental.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `process/spawn`. The server returns the result once the process is running;
/// notifications report its output and exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSpawnParams {
    /// Program and arguments, run without a shell; must not be empty.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    pub cwd: String,
    /// Handle of the process, chosen by the client and unique among the processes running on its
    /// connection.
    pub process_handle: String,
    /// Changes to the environment variables: a string sets a variable, null removes it.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// Maximum number of bytes returned of stdout, and of stderr. On the wire, null removes the
    /// cap, and absence means the server's default.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub output_bytes_cap: Maybe<u64>,
    /// Initial size of the terminal; only with `tty`.
    pub size: Option<ProcessTerminalSize>,
    /// Enables `process/writeStdin`. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdin: bool,
    /// Streams output by `process/outputDelta` and omits it from `process/exited`. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdout_stderr: bool,
    /// Timeout in milliseconds. On the wire, null means no timeout, and absence means the server's
    /// default.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub timeout_ms: Maybe<i64>,
    /// Runs the command in a pseudo-terminal and enables both kinds of streaming. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tty: bool,
}

/// Result of `process/spawn`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSpawnResponse {}

/// Params of `process/writeStdin`, which writes to stdin, closes it, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessWriteStdinParams {
    /// Handle of the process, from `process/spawn`.
    pub process_handle: String,
    /// Closes stdin once the bytes are written. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub close_stdin: bool,
    /// Bytes to write, in base64; null writes nothing.
    pub delta_base64: Option<String>,
}

/// Result of `process/writeStdin`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWriteStdinResponse {}

/// Params of `process/kill`. The exit is reported by `process/exited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessKillParams {
    /// Handle of the process, from `process/spawn`.
    pub process_handle: String,
}

/// Result of `process/kill`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessKillResponse {}

/// Params of `process/resizePty`, for processes started with `tty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessResizePtyParams {
    /// Handle of the process, from `process/spawn`.
    pub process_handle: String,
    /// New size of the terminal.
    pub size: ProcessTerminalSize,
}

/// Result of `process/resizePty`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessResizePtyResponse {}

/// `process/outputDelta`: a process wrote output. Sent only to the connection that spawned it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessOutputDeltaNotification {
    /// Whether the output cap was reached; no more output of this stream follows.
    pub cap_reached: bool,
    /// Output bytes in base64; a character may be split between two deltas.
    pub delta_base64: String,
    /// Handle of the process, from `process/spawn`.
    pub process_handle: String,
    /// Stream to which the process wrote.
    pub stream: ProcessOutputStream,
}

/// `process/exited`: a process has ended. Sent only to the connection that spawned it. Its handle
/// may be reused afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExitedNotification {
    /// Exit code of the process.
    pub exit_code: i32,
    /// Handle of the process, from `process/spawn`.
    pub process_handle: String,
    /// Captured stderr, up to the cap; empty if it was streamed.
    pub stderr: String,
    /// Whether stderr was truncated at the cap, streamed or not.
    pub stderr_cap_reached: bool,
    /// Captured stdout, up to the cap; empty if it was streamed.
    pub stdout: String,
    /// Whether stdout was truncated at the cap, streamed or not.
    pub stdout_cap_reached: bool,
    /// Whether the server stopped waiting for output streams that were still open after the exit.
    /// Null from servers that do not report it.
    pub output_drain_timed_out: Option<bool>,
}

/// Size of a `process/spawn` terminal, in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessTerminalSize {
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
}

open_enum! {
    /// An output stream of a process.
    pub enum ProcessOutputStream {
        /// Standard output; with `tty`, all output of the terminal.
        Stdout = "stdout",
        /// Standard error; unused with `tty`.
        Stderr = "stderr",
    }
}
