//! The errors of requests, and their form on the wire. Each code has a page in `docs/errors/`.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use raddle_config::{ConfigWriteError, SettingError};
use raddle_core::TurnKind;
use raddle_core::ports::{CheckpointError, CopyError, McpError, PluginRequestError};
use raddle_protocol::{CodexErrorInfo, NonSteerableTurnKind, NotSteerable, TurnError};
use raddle_rpc::{ErrorObject, Id, code};
use raddle_sandbox::{ConfinementError, HoldError, SandboxRefusal, StartError};
use serde_json::{Map, Value, json};

pub(crate) use raddle_config::quoted;

/// The `errorInfo` of an error about a thread of another process.
pub(crate) const OWNED_ELSEWHERE: &str = "owned_elsewhere";

/// Retry delay for an overloaded server.
const RETRY_AFTER_MS: u64 = 100;

/// Retry delay for storage that is unavailable.
const STORAGE_RETRY_AFTER_MS: u64 = 1000;

/// Retry delay for a folder in which a tool runs.
const FILES_BUSY_RETRY_AFTER_MS: u64 = 1000;

/// Reason why a request failed.
#[derive(Debug)]
pub(crate) enum WireError {
    /// A request came before `initialize`.
    NotInitialized,
    AlreadyInitialized,
    /// The server does not have the method.
    UnknownMethod(Box<str>),
    /// A method or param that requires an opt-in.
    Experimental(String),
    /// The id of a request that is still running.
    IdInUse(Id),
    /// Too many requests at once.
    Overloaded,
    /// Params of the wrong shape.
    InvalidRequest(String),
    /// Params of the right shape that exclude each other, where the contract has a code for it.
    InvalidParams(&'static str),
    /// Params of the right shape with a value that is not possible.
    Refused(Cow<'static, str>),
    /// A setting that is rejected, in the request or in the configuration.
    Setting(SettingError),
    /// A member of an older contract that bounded the agent.
    Obsolete {
        method: &'static str,
    },
    /// A permission profile that the operator does not allow.
    ProfileNotAllowed {
        id: String,
        /// The operator's objection, and what to do.
        why: String,
    },
    /// A request that an observer may not make.
    Observer,
    /// A thread whose work would start if an observer opened it.
    ObserverWouldBegin,
    /// The events after a record are no longer complete.
    CursorExpired {
        /// Sequence number of the record.
        seq: u64,
    },
    /// A client's request id that was already used for another request.
    KeyReused,
    /// Input for a turn while none runs.
    NothingToSteer,
    /// Input for a turn that accepts none.
    NotSteerable(TurnKind),
    /// Input with more characters than a turn accepts.
    InputTooLarge {
        /// The number of characters.
        chars: usize,
        chars_max: usize,
    },
    /// An image that is missing, too large, or invalid.
    NoImage(String),
    /// A configuration write that was rejected; the kind is for programs.
    ConfigWrite {
        kind: &'static str,
        message: String,
    },
    /// A pipe, a device or a socket where a regular file belongs.
    SpecialFile {
        path: PathBuf,
        /// The type of the file.
        what: &'static str,
    },
    /// A path that is closed to every client.
    ClosedPath {
        path: PathBuf,
    },
    /// A path that is closed to this observer.
    OutsideOfThreads {
        path: PathBuf,
    },
    /// File changes of a thread that this observer does not follow.
    NotFollowed,
    /// A file whose response would not fit into a message.
    FileTooLarge {
        path: PathBuf,
        /// The size of the file, at least.
        bytes: u64,
        /// The maximum size of a file.
        bytes_max: u64,
        /// The maximum size of a response.
        message_bytes_max: u64,
    },
    /// Checkpoints that cannot be read or restored.
    Checkpoint(CheckpointError),
    /// A workspace that cannot be copied, or whose changes cannot be applied.
    Copy(CopyError),
    /// A failure after files were restored. They could not be returned to their state before.
    FilesStayRestored {
        error: Box<Self>,
        /// The checkpoint of the state before the restore.
        checkpoint: String,
    },
    /// A command that cannot be confined as required.
    NotSandboxed(SandboxRefusal),
    /// A command whose output exceeds the limit of a response.
    OutputTooLarge {
        /// The limit of each stream.
        bytes_max: usize,
    },
    /// A program that could not be started.
    NotStarted(StartError),
    /// An error of the file system.
    Io(io::Error),
    /// Stored data cannot be read or appended to.
    Storage(String),
    /// The storage is unavailable for now.
    StorageAway,
    /// Another live process owns the thread, and requests cannot be forwarded to it.
    OwnedElsewhere {
        /// The name of that process.
        node: String,
        why: String,
    },
    /// The owning process ended before it responded, or does not respond.
    OwnerLost,
    /// The thread ended before the outcome of the request was known.
    OutcomeUnknown,
    /// Work that ended without a response.
    Dropped,
}

impl From<SandboxRefusal> for WireError {
    fn from(refused: SandboxRefusal) -> Self {
        Self::NotSandboxed(refused)
    }
}

impl From<ConfinementError> for WireError {
    fn from(error: ConfinementError) -> Self {
        match error {
            ConfinementError::NotMeasured => Self::Overloaded,
            ConfinementError::Refused(refused) => Self::NotSandboxed(refused),
            ConfinementError::Holds(HoldError::Io(error)) | ConfinementError::Egress(error) => {
                Self::Io(error)
            }
            ConfinementError::Holds(busy @ HoldError::Busy(_)) => {
                Self::Refused(busy.to_string().into())
            }
        }
    }
}

impl From<CopyError> for WireError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Files(error) => Self::Checkpoint(error),
            error => Self::Copy(error),
        }
    }
}

impl From<CheckpointError> for WireError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

impl From<McpError> for WireError {
    fn from(error: McpError) -> Self {
        Self::Refused(error.to_string().into())
    }
}

impl From<PluginRequestError> for WireError {
    fn from(error: PluginRequestError) -> Self {
        Self::Refused(error.to_string().into())
    }
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SettingError> for WireError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<ConfigWriteError> for WireError {
    fn from(error: ConfigWriteError) -> Self {
        match error {
            ConfigWriteError::Rejected { kind, message } => Self::ConfigWrite { kind, message },
            ConfigWriteError::Unusable(error) => Self::Refused(error.to_string().into()),
            ConfigWriteError::Io(error) => Self::Io(error),
        }
    }
}

impl From<StartError> for WireError {
    fn from(error: StartError) -> Self {
        Self::NotStarted(error)
    }
}

impl From<WireError> for ErrorObject {
    fn from(error: WireError) -> Self {
        let invalid = |message: Cow<'static, str>| Self::new(code::INVALID_REQUEST, message);
        match error {
            WireError::NotInitialized => invalid("Not initialized".into()),
            WireError::AlreadyInitialized => invalid("Already initialized".into()),
            WireError::UnknownMethod(method) => Self::new(
                code::METHOD_NOT_FOUND,
                format!("method not found: {method}"),
            ),
            WireError::Experimental(what) => {
                invalid(format!("{what} requires experimentalApi capability").into())
            }
            WireError::IdInUse(id) => {
                invalid(format!("Invalid request: a request with id {id} is still running").into())
            }
            WireError::Overloaded => Self::new(code::OVERLOADED, "Server overloaded; retry later.")
                .with_data(
                    json!({ "errorInfo": "server_overloaded", "retryAfterMs": RETRY_AFTER_MS }),
                ),
            WireError::StorageAway => Self::new(
                code::OVERLOADED,
                "the storage is unavailable for now; retry later",
            )
            .with_data(
                json!({ "errorInfo": "server_overloaded", "retryAfterMs": STORAGE_RETRY_AFTER_MS }),
            ),
            WireError::InvalidRequest(what) => invalid(format!("Invalid request: {what}").into()),
            WireError::InvalidParams(what) => Self::new(code::INVALID_PARAMS, what),
            WireError::Refused(what) => invalid(what),
            WireError::Setting(error) => {
                let object = invalid(error.to_string().into());
                match error {
                    SettingError::UnknownProfile { known, .. } => object.with_data(
                        json!({ "errorInfo": "unknown_permission_profile", "known": known }),
                    ),
                    SettingError::Refused(_) | SettingError::Contradiction { .. } => object,
                }
            }
            WireError::Obsolete { method } => Self::new(
                code::INVALID_PARAMS,
                format!(
                    "`permissionProfile` is no longer supported for `{method}`; use `permissions` with a named profile id instead"
                ),
            ),
            WireError::ProfileNotAllowed { id, why } => {
                invalid(format!("the permission profile `{id}` may not be used: {why}").into())
                    .with_data(json!({ "errorInfo": "permission_profile_not_allowed" }))
            }
            WireError::Observer => {
                invalid("an observer may only read; connect as a driver to make changes".into())
                    .with_data(json!({ "errorInfo": "observer" }))
            }
            WireError::ObserverWouldBegin => invalid(
                "resuming the thread would start its work, which an observer may not do; a driver must resume \
                 it first. thread/read shows it meanwhile"
                    .into(),
            )
            .with_data(json!({ "errorInfo": "observer" })),
            WireError::CursorExpired { seq } => invalid(
                format!("what came after {seq} can no longer be listed completely; resume without afterSeq, and discard the earlier state").into(),
            )
            .with_data(json!({ "errorInfo": "cursorExpired" })),
            WireError::KeyReused => invalid("this clientRequestId was used for a different request".into())
                .with_data(json!({
                    "errorInfo": "idempotency_conflict",
                    "hint": "send the same params as then, or a new clientRequestId",
                })),
            // Clients match this text, and start a turn with their input instead.
            WireError::NothingToSteer => invalid("no active turn to steer".into())
                .with_data(json!({ "hint": "begin one with turn/start" })),
            WireError::NotSteerable(kind) => not_steerable(kind),
            WireError::InputTooLarge { chars, chars_max } => Self::new(
                code::INVALID_PARAMS,
                format!("the input has {chars} characters; at most {chars_max} are accepted; send less, or a path"),
            )
            .with_data(json!({
                "input_error_code": "input_too_large",
                "max_chars": chars_max,
                "actual_chars": chars,
            })),
            WireError::NoImage(message) => Self::new(code::INVALID_PARAMS, message)
                .with_data(json!({ "input_error_code": "invalid_image" })),
            WireError::ConfigWrite { kind, message } => {
                invalid(message.into()).with_data(json!({ "config_write_error_code": kind }))
            }
            WireError::SpecialFile { path, what } => invalid(
                format!("{} is not a regular file: it is {what}", path.display()).into(),
            )
            .with_data(json!({ "errorInfo": "special_file" })),
            WireError::ClosedPath { path } => invalid(
                format!(
                    "{} is closed to clients: it shows processes, or belongs to the server, which holds keys and tokens; read it on the server's machine",
                    path.display()
                )
                .into(),
            )
            .with_data(json!({ "errorInfo": "closed_path" })),
            WireError::OutsideOfThreads { path } => invalid(
                format!(
                    "{} is in no workspace of a thread that this observer follows; resume the thread first, or connect as a driver",
                    path.display()
                )
                .into(),
            )
            .with_data(json!({ "errorInfo": "observer" })),
            WireError::NotFollowed => invalid(
                "an observer reads the file changes of threads that it follows; resume the thread first, or connect as a driver"
                    .into(),
            )
            .with_data(json!({ "errorInfo": "observer" })),
            WireError::FileTooLarge {
                path,
                bytes,
                bytes_max,
                message_bytes_max,
            } => invalid(
                format!(
                    "{} has {bytes} bytes; at most {bytes_max} fit into an answer of {message_bytes_max} bytes",
                    path.display()
                )
                .into(),
            )
            .with_data(
                json!({ "errorInfo": "file_too_large", "bytes": bytes, "bytesMax": bytes_max }),
            ),
            WireError::Checkpoint(error) => checkpoint(&error),
            WireError::Copy(error) => copy(&error),
            WireError::FilesStayRestored { error, checkpoint } => {
                with_restored_checkpoint(Self::from(*error), checkpoint)
            }
            WireError::NotSandboxed(refused) => invalid(refused.to_string().into())
                .with_data(json!({ "errorInfo": "sandbox_unavailable" })),
            WireError::OutputTooLarge { bytes_max } => invalid(
                format!("the command wrote more than the {bytes_max} bytes that are stored of each stream, and was ended; set outputBytesCap to truncate the output, or streamStdoutStderr to receive it as it arrives").into(),
            )
            .with_data(json!({ "errorInfo": "output_too_large", "bytesMax": bytes_max })),
            WireError::NotStarted(error) => Self::new(code::INTERNAL, error.to_string()),
            WireError::Io(error) => Self::new(code::INTERNAL, error.to_string()),
            WireError::Storage(what) => {
                Self::new(code::INTERNAL, what).with_data(json!({ "errorInfo": "storage" }))
            }
            WireError::OwnedElsewhere { node, why } => invalid(
                format!("another running process owns the thread (node {node}): {why}; use the thread there, or end that process and try again").into(),
            )
            .with_data(json!({ "errorInfo": OWNED_ELSEWHERE, "node": node })),
            WireError::OwnerLost => Self::new(
                code::OVERLOADED,
                "the process that owned the thread ended or stopped responding, and may have run the request; read the thread, then retry",
            )
            .with_data(json!({ "errorInfo": "owner_lost", "retryAfterMs": RETRY_AFTER_MS })),
            WireError::OutcomeUnknown => Self::new(
                code::OVERLOADED,
                "the thread moved, or its journal became unavailable, while the request was being stored, so it may have run; read the thread, then retry",
            )
            .with_data(json!({ "errorInfo": "owner_lost", "retryAfterMs": RETRY_AFTER_MS })),
            WireError::Dropped => Self::new(
                code::INTERNAL,
                "internal error: the request got no response; see the server's log",
            ),
        }
    }
}

/// Returns the error for checkpoints that cannot be read or restored.
fn checkpoint(error: &CheckpointError) -> ErrorObject {
    let (code, data) = match error {
        CheckpointError::NoSuchCheckpoint => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "no_such_checkpoint" }),
        ),
        CheckpointError::NoCheckpointOfTurn => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "no_checkpoint_of_turn" }),
        ),
        CheckpointError::OtherFolder(first, second) => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "other_folder", "folders": [first, second] }),
        ),
        CheckpointError::NotChanged(_) => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "path_not_changed" }),
        ),
        CheckpointError::Expired => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "checkpoint_expired" }),
        ),
        CheckpointError::Disabled => (
            code::INVALID_REQUEST,
            json!({ "errorInfo": "checkpoints_disabled" }),
        ),
        CheckpointError::Busy(_) => (
            code::OVERLOADED,
            json!({ "errorInfo": "files_busy", "retryAfterMs": FILES_BUSY_RETRY_AFTER_MS }),
        ),
        CheckpointError::Failed(_) => (code::INTERNAL, json!({ "errorInfo": "storage" })),
    };
    ErrorObject::new(code, error.to_string()).with_data(data)
}

/// Returns the error for a copy of a workspace.
fn copy(error: &CopyError) -> ErrorObject {
    let info = match error {
        CopyError::CannotCopy(_) => "workspace_not_copied",
        CopyError::NoCopy => "no_workspace_copy",
        CopyError::NotChanged(_) => "path_not_changed",
        CopyError::Files(error) => return checkpoint(error),
    };
    let error = ErrorObject::new(code::INVALID_REQUEST, error.to_string());
    error.with_data(json!({ "errorInfo": info }))
}

/// Adds the checkpoint of the files that stay restored to an error.
fn with_restored_checkpoint(error: ErrorObject, checkpoint: String) -> ErrorObject {
    let mut data = match error.data.as_deref() {
        Some(Value::Object(data)) => data.clone(),
        _ => Map::new(),
    };
    data.insert("restoredCheckpointId".to_owned(), checkpoint.into());
    error.with_data(data.into())
}

/// Returns the error for a running turn that accepts no input. Its data is a turn error.
fn not_steerable(kind: TurnKind) -> ErrorObject {
    let (turn_kind, what) = match kind {
        TurnKind::Review => (NonSteerableTurnKind::Review, "a review"),
        TurnKind::Compaction | TurnKind::Work | TurnKind::Shell => {
            (NonSteerableTurnKind::Compact, "a compaction")
        }
    };
    let message =
        format!("the active turn is {what} and accepts no input; retry when it has ended");
    let error = TurnError {
        message: message.clone(),
        additional_details: None,
        codex_error_info: Some(CodexErrorInfo::ActiveTurnNotSteerable(NotSteerable {
            turn_kind,
        })),
        misalignment: None,
        class: None,
        retry_at_ms: None,
        budget: None,
    };
    let data = serde_json::to_value(error).unwrap_or_default();
    ErrorObject::new(code::INVALID_REQUEST, message).with_data(data)
}
