//! Commands that a client runs in the server's sandbox, outside any thread.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `command/exec`. The server returns the result after the process has ended and all its
/// output was sent. Disconnecting kills the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecParams {
    /// Id of the process, chosen by the client and unique on its connection. Required for a
    /// terminal, for streaming and for the other `command/exec` methods; null otherwise.
    pub process_id: Option<String>,
    /// Program and arguments, run without a shell; must not be empty.
    pub command: Vec<String>,
    /// Working directory; null means the server's own working directory.
    pub cwd: Option<String>,
    /// Returns all output; absent means false. Cannot be combined with `outputBytesCap`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disable_output_cap: bool,
    /// Runs without a timeout; absent means false. Cannot be combined with `timeoutMs`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disable_timeout: bool,
    /// Changes to the environment variables: a string sets a variable, null removes it.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// Maximum number of bytes returned of stdout, and of stderr. Null means 1 MiB.
    pub output_bytes_cap: Option<u64>,
    /// Id of the permission profile to run under. Cannot be combined with `sandboxPolicy`. If both
    /// are null the configured permissions apply.
    #[schemars(extend("x-experimental" = true))]
    pub permission_profile: Option<String>,
    /// Sandbox policy of the command. Cannot be combined with `permissionProfile`.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// Initial size of the terminal; only with `tty`.
    pub size: Option<CommandExecTerminalSize>,
    /// Enables `command/exec/write` to stdin. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdin: bool,
    /// Streams output by `command/exec/outputDelta` and omits it from the result. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stream_stdout_stderr: bool,
    /// Timeout in milliseconds, after which the process is killed with exit code 124. Null means 10
    /// seconds.
    pub timeout_ms: Option<i64>,
    /// Runs the command in a pseudo-terminal and enables both kinds of streaming. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tty: bool,
}

/// Result of `command/exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResponse {
    /// Exit code of the process; 124 after a timeout.
    pub exit_code: i32,
    /// Captured stderr, up to the cap; empty if it was streamed.
    pub stderr: String,
    /// Captured stdout, up to the cap; empty if it was streamed.
    pub stdout: String,
}

/// Params of `command/exec/write`, which writes to stdin, closes it, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecWriteParams {
    /// Id of the process, from `command/exec`.
    pub process_id: String,
    /// Closes stdin once the bytes are written. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub close_stdin: bool,
    /// Bytes to write, in base64; null writes nothing.
    pub delta_base64: Option<String>,
}

/// Result of `command/exec/write`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecWriteResponse {}

/// Params of `command/exec/terminate`. The exit is reported by the result of `command/exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecTerminateParams {
    /// Id of the process, from `command/exec`.
    pub process_id: String,
}

/// Result of `command/exec/terminate`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecTerminateResponse {}

/// Params of `command/exec/resize`, for processes started with `tty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResizeParams {
    /// Id of the process, from `command/exec`.
    pub process_id: String,
    /// New size of the terminal.
    pub size: CommandExecTerminalSize,
}

/// Result of `command/exec/resize`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecResizeResponse {}

/// `command/exec/outputDelta`: a process wrote output. Sent only to the connection that runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecOutputDeltaNotification {
    /// Id of the process, from `command/exec`.
    pub process_id: String,
    /// Whether the output cap was reached; no more output of this stream follows.
    pub cap_reached: bool,
    /// Output bytes in base64; a character may be split between two deltas.
    pub delta_base64: String,
    /// Stream to which the process wrote.
    pub stream: CommandExecOutputStream,
}

/// Size of a `command/exec` terminal, in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecTerminalSize {
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
}

open_enum! {
    /// An output stream of a process.
    pub enum CommandExecOutputStream {
        /// Standard output; with `tty`, all output of the terminal.
        Stdout = "stdout",
        /// Standard error; unused with `tty`.
        Stderr = "stderr",
    }
}
