//! Commands a client runs in the server's sandbox, outside any thread.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `command/exec`.
/// The result comes after the process has ended and all its output was told; disconnecting kills it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecParams {
    /// The client's name for the process, unique on its connection.
    /// Needed for a terminal, for streaming and for the other `command/exec` methods; null otherwise.
    pub process_id: Option<String>,
    /// The program and its arguments, without a shell; must not be empty.
    pub command: Vec<String>,
    /// Where to run; null means the server's own working directory.
    pub cwd: Option<String>,
    /// Keep all output; absent means false. Excludes `outputBytesCap`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disable_output_cap: bool,
    /// Let it run as long as it likes; absent means false. Excludes `timeoutMs`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disable_timeout: bool,
    /// Changes to the environment: a string sets a variable, null removes it.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// The most bytes kept of stdout, and as many of stderr. Null means 1 MiB.
    pub output_bytes_cap: Option<u64>,
    /// The permission profile to run under, by id. Excludes `sandboxPolicy`.
    /// If both are null the configured permissions apply.
    #[schemars(extend("x-experimental" = true))]
    pub permission_profile: Option<String>,
    /// The sandbox to run in. Excludes `permissionProfile`.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The terminal's size at the start; only with `tty`.
    pub size: Option<CommandExecTerminalSize>,
    /// Let `command/exec/write` feed its stdin. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdin: bool,
    /// Tell output as it comes by `command/exec/outputDelta` and leave it out of the result.
    /// Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdout_stderr: bool,
    /// After how many milliseconds to stop it, with exit code 124. Null means 10 seconds.
    pub timeout_ms: Option<i64>,
    /// Run it in a pseudo-terminal; this turns both kinds of streaming on. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tty: bool,
}

/// Result of `command/exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResponse {
    /// The exit code; 124 when it ran out of time.
    pub exit_code: i32,
    /// What it wrote to stderr, up to the cap; empty if that was streamed.
    pub stderr: String,
    /// What it wrote to stdout, up to the cap; empty if that was streamed.
    pub stdout: String,
}

/// Params of `command/exec/write`: feed a process, end its input, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecWriteParams {
    /// The process, as named in `command/exec`.
    pub process_id: String,
    /// Close stdin once the bytes are written. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub close_stdin: bool,
    /// The bytes to write, in base64; null writes nothing.
    pub delta_base64: Option<String>,
}

/// Result of `command/exec/write`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecWriteResponse {}

/// Params of `command/exec/terminate`. The exit is told in the result of `command/exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecTerminateParams {
    /// The process, as named in `command/exec`.
    pub process_id: String,
}

/// Result of `command/exec/terminate`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecTerminateResponse {}

/// Params of `command/exec/resize`, for processes started with `tty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResizeParams {
    /// The process, as named in `command/exec`.
    pub process_id: String,
    /// The terminal's new size.
    pub size: CommandExecTerminalSize,
}

/// Result of `command/exec/resize`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecResizeResponse {}

/// `command/exec/outputDelta`: a process wrote something. Told only to the connection that runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecOutputDeltaNotification {
    /// The process, as named in `command/exec`.
    pub process_id: String,
    /// Whether the cap was met here; nothing more of this stream will be told.
    pub cap_reached: bool,
    /// The bytes, in base64; a character may be split between two deltas.
    pub delta_base64: String,
    /// Where it was written.
    pub stream: CommandExecOutputStream,
}

/// The size of a `command/exec` terminal, counted in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecTerminalSize {
    /// Its width.
    pub cols: u16,
    /// Its height.
    pub rows: u16,
}

open_enum! {
    /// An output stream of a process.
    pub enum CommandExecOutputStream {
        /// Stdout; with `tty`, all that the terminal shows.
        Stdout = "stdout",
        /// Stderr; unused with `tty`.
        Stderr = "stderr",
    }
}
