//! Processes a client runs on the server's machine without a sandbox. Experimental.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `process/spawn`.
/// The result comes once the process runs; output and exit are told by notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSpawnParams {
    /// The program and its arguments, without a shell; must not be empty.
    pub command: Vec<String>,
    /// Where to run, as an absolute path.
    pub cwd: String,
    /// The client's name for the process, unique among those running on its connection.
    pub process_handle: String,
    /// Changes to the environment: a string sets a variable, null removes it.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// The most bytes kept of stdout, and as many of stderr.
    /// On the wire null lifts the cap, while absence means the server's default.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub output_bytes_cap: Maybe<u64>,
    /// The terminal's size at the start; only with `tty`.
    pub size: Option<ProcessTerminalSize>,
    /// Let `process/writeStdin` feed its stdin. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdin: bool,
    /// Tell output as it comes by `process/outputDelta` and leave it out of `process/exited`.
    /// Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdout_stderr: bool,
    /// After how many milliseconds to stop it.
    /// On the wire null lets it run on, while absence means the server's default.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub timeout_ms: Maybe<i64>,
    /// Run it in a pseudo-terminal; this turns both kinds of streaming on. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tty: bool,
}

/// Result of `process/spawn`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSpawnResponse {}

/// Params of `process/writeStdin`: feed a process, end its input, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessWriteStdinParams {
    /// The process, as named in `process/spawn`.
    pub process_handle: String,
    /// Close stdin once the bytes are written. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub close_stdin: bool,
    /// The bytes to write, in base64; null writes nothing.
    pub delta_base64: Option<String>,
}

/// Result of `process/writeStdin`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWriteStdinResponse {}

/// Params of `process/kill`. The exit is told by `process/exited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessKillParams {
    /// The process, as named in `process/spawn`.
    pub process_handle: String,
}

/// Result of `process/kill`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessKillResponse {}

/// Params of `process/resizePty`, for processes started with `tty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessResizePtyParams {
    /// The process, as named in `process/spawn`.
    pub process_handle: String,
    /// The terminal's new size.
    pub size: ProcessTerminalSize,
}

/// Result of `process/resizePty`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessResizePtyResponse {}

/// `process/outputDelta`: a process wrote something. Told only to the connection that spawned it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessOutputDeltaNotification {
    /// Whether the cap was met here; nothing more of this stream will be told.
    pub cap_reached: bool,
    /// The bytes, in base64; a character may be split between two deltas.
    pub delta_base64: String,
    /// The process, as named in `process/spawn`.
    pub process_handle: String,
    /// Where it was written.
    pub stream: ProcessOutputStream,
}

/// `process/exited`: a process has ended. Told only to the connection that spawned it.
/// Its handle may be used again afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExitedNotification {
    /// The exit code.
    pub exit_code: i32,
    /// The process, as named in `process/spawn`.
    pub process_handle: String,
    /// What it wrote to stderr, up to the cap; empty if that was streamed.
    pub stderr: String,
    /// Whether stderr was cut off at the cap, streamed or not.
    pub stderr_cap_reached: bool,
    /// What it wrote to stdout, up to the cap; empty if that was streamed.
    pub stdout: String,
    /// Whether stdout was cut off at the cap, streamed or not.
    pub stdout_cap_reached: bool,
    /// Whether the server stopped waiting for output that was still open after the exit.
    /// Null from servers that do not say.
    pub output_drain_timed_out: Option<bool>,
}

/// The size of a `process/spawn` terminal, counted in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessTerminalSize {
    /// Its width.
    pub cols: u16,
    /// Its height.
    pub rows: u16,
}

open_enum! {
    /// An output stream of a process.
    pub enum ProcessOutputStream {
        /// Stdout; with `tty`, all that the terminal shows.
        Stdout = "stdout",
        /// Stderr; unused with `tty`.
        Stderr = "stderr",
    }
}
