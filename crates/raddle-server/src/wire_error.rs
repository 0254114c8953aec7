//! Everything that can go wrong with a request, as the wire says it. Each code has a page in
//! `docs/errors/`.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use raddle_core::TurnKind;
use raddle_protocol::{CodexErrorInfo, NonSteerableTurnKind, NotSteerable, TurnError};
use raddle_rpc::{ErrorObject, Id, code};
use raddle_sandbox::{ConfinementError, HoldError, SandboxRefusal, StartError};
use serde_json::json;

/// What an error says for programs that is about a thread of another process.
pub(crate) const OWNED_ELSEWHERE: &str = "owned_elsewhere";

/// How long an overloaded client should wait before it tries again.
const RETRY_AFTER_MS: u64 = 100;

/// How long a client should wait for a storage that is away.
const STORAGE_RETRY_AFTER_MS: u64 = 1000;

/// How much of a client's own text is sent back to it in an error.
const QUOTED_BYTES_MAX: usize = 256;

/// The beginning of a client's text, enough for a person to know it again. Errors must not carry back
/// what may be megabytes.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED_BYTES_MAX {
        return text.into();
    }
    let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
    format!("{}…", &text[..end]).into()
}

/// Why a request was not done.
#[derive(Debug)]
pub(crate) enum WireError {
    /// Something came before `initialize`.
    NotInitialized,
    /// A second `initialize`.
    AlreadyInitialized,
    /// The method is not served here.
    UnknownMethod(Box<str>),
    /// A method or param for which the client must opt in.
    Experimental(String),
    /// The id of a request that is still running.
    IdInUse(Id),
    /// Too many requests at once.
    Overloaded,
    /// Params of the wrong shape.
    InvalidRequest(String),
    /// Params of the right shape that ask for something that cannot be.
    Refused(Cow<'static, str>),
    /// Two members of a request with different values for one bound.
    Contradiction {
        /// The one, as a path of the params.
        one: String,
        /// The other.
        other: String,
    },
    /// A member that the contract had, which bounded what may be done.
    Obsolete {
        /// The request.
        method: &'static str,
    },
    /// A permission profile that is not there.
    UnknownProfile {
        /// Its id.
        id: String,
        /// Those that are.
        known: Vec<String>,
    },
    /// A permission profile that the operator does not allow.
    ProfileNotAllowed {
        /// Its id.
        id: String,
        /// What the operator has against it, and what to do.
        why: String,
    },
    /// Something that an observer may not do.
    Observer,
    /// A thread whose work would begin if an observer opened it.
    ObserverWouldBegin,
    /// What came after a record cannot be told exactly.
    CursorExpired {
        /// The record.
        seen: u64,
    },
    /// A client's own id for a request that was another request's.
    KeyReused,
    /// Input for a turn while none runs.
    NothingToSteer,
    /// Input for a turn that takes none.
    NotSteerable(TurnKind),
    /// Input of more characters than a turn takes.
    InputTooLarge {
        /// How many there are.
        chars: usize,
        /// How many there may be.
        chars_max: usize,
    },
    /// An image that is not there, too large, or none.
    NoImage(String),
    /// A configuration write that was refused; the kind is for programs.
    ConfigWrite {
        /// The kind.
        kind: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A pipe, a device or a socket where a regular file belongs.
    SpecialFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A path that no client is served.
    ClosedPath {
        /// The path.
        path: PathBuf,
    },
    /// A path that an observer is not served.
    OutsideOfThreads {
        /// The path.
        path: PathBuf,
    },
    /// A file whose answer would not fit into a message.
    FileTooLarge {
        /// The path.
        path: PathBuf,
        /// How many bytes it has, at least.
        bytes: u64,
        /// How many it may have.
        bytes_max: u64,
        /// How many the answer may have.
        message_bytes_max: u64,
    },
    /// A command that cannot be fenced in as it should be.
    NotSandboxed(SandboxRefusal),
    /// A command that wrote more than is kept for an answer.
    OutputTooLarge {
        /// How much of each stream is kept.
        bytes_max: usize,
    },
    /// A program that could not be started.
    NotStarted(StartError),
    /// The file system said no.
    Io(io::Error),
    /// What is stored cannot be read or added to.
    Storage(String),
    /// Where things are stored does not answer for now.
    StorageAway,
    /// Another process that is alive has the thread, and it cannot be used through that.
    OwnedElsewhere {
        /// The name of that process.
        node: String,
        /// Why not.
        why: String,
    },
    /// The process that has the thread ended before it answered, or does not answer.
    OwnerLost,
    /// Work that ended without an answer.
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

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
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
                "what is stored cannot be reached for now; retry later",
            )
            .with_data(
                json!({ "errorInfo": "server_overloaded", "retryAfterMs": STORAGE_RETRY_AFTER_MS }),
            ),
            WireError::InvalidRequest(what) => invalid(format!("Invalid request: {what}").into()),
            WireError::Refused(what) => invalid(what),
            WireError::Contradiction { one, other } => invalid(
                format!("`{one}` and `{other}` bound the same and differ; send one of them").into(),
            ),
            WireError::Obsolete { method } => Self::new(
                code::INVALID_PARAMS,
                format!(
                    "`permissionProfile` is no longer supported for `{method}`; use `permissions` with a named profile id instead"
                ),
            ),
            WireError::UnknownProfile { id, known } => invalid(
                format!(
                    "unknown permission profile `{id}`; use one of {}, or add [permissions.NAME] to the configuration",
                    known.join(", ")
                )
                .into(),
            )
            .with_data(json!({ "errorInfo": "unknown_permission_profile", "known": known })),
            WireError::ProfileNotAllowed { id, why } => {
                invalid(format!("the permission profile `{id}` may not be used: {why}").into())
                    .with_data(json!({ "errorInfo": "permission_profile_not_allowed" }))
            }
            WireError::Observer => {
                invalid("an observer may only look; connect as a driver to change something".into())
                    .with_data(json!({ "errorInfo": "observer" }))
            }
            WireError::ObserverWouldBegin => invalid(
                "the thread has work that begins once it is resumed, and an observer begins none; a driver must resume \
                 it first. thread/read shows it meanwhile"
                    .into(),
            )
            .with_data(json!({ "errorInfo": "observer" })),
            WireError::CursorExpired { seen } => invalid(
                format!("what came after {seen} cannot be told exactly any more; resume without afterSeq, and forget what was told before").into(),
            )
            .with_data(json!({ "errorInfo": "cursorExpired" })),
            WireError::KeyReused => invalid("this clientRequestId was used for a different request".into())
                .with_data(json!({
                    "errorInfo": "idempotency_conflict",
                    "hint": "send the same params as then, or a new clientRequestId",
                })),
            // Clients know these words, and begin a turn with what they have.
            WireError::NothingToSteer => invalid("no active turn to steer".into())
                .with_data(json!({ "hint": "begin one with turn/start" })),
            WireError::NotSteerable(kind) => not_steerable(kind),
            WireError::InputTooLarge { chars, chars_max } => Self::new(
                code::INVALID_PARAMS,
                format!("the input has {chars} characters; at most {chars_max} are taken, so send less, or a path"),
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
                    "{} is not served: it shows processes, or belongs to the server itself, where keys and tokens are; look at it on the server's machine",
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
            WireError::NotSandboxed(refused) => invalid(refused.to_string().into())
                .with_data(json!({ "errorInfo": "sandbox_unavailable" })),
            WireError::OutputTooLarge { bytes_max } => invalid(
                format!("the command wrote more than the {bytes_max} bytes that are kept of each stream, and was ended; set outputBytesCap to have the beginning, or streamStdoutStderr to have all as it comes").into(),
            )
            .with_data(json!({ "errorInfo": "output_too_large", "bytesMax": bytes_max })),
            WireError::NotStarted(error) => Self::new(code::INTERNAL, error.to_string()),
            WireError::Io(error) => Self::new(code::INTERNAL, error.to_string()),
            WireError::Storage(what) => {
                Self::new(code::INTERNAL, what).with_data(json!({ "errorInfo": "storage" }))
            }
            WireError::OwnedElsewhere { node, why } => invalid(
                format!("another running process has the thread (node {node}): {why}; use the thread there, or end that process and try again").into(),
            )
            .with_data(json!({ "errorInfo": OWNED_ELSEWHERE, "node": node })),
            WireError::OwnerLost => Self::new(
                code::OVERLOADED,
                "the process that had the thread ended, or stopped answering, and may have done what it was asked; look at the thread, then retry",
            )
            .with_data(json!({ "errorInfo": "owner_lost", "retryAfterMs": RETRY_AFTER_MS })),
            WireError::Dropped => Self::new(
                code::INTERNAL,
                "the server failed to answer; its log says more",
            ),
        }
    }
}

/// The turn that runs takes no input. The data says so in the words for what is wrong with a turn.
fn not_steerable(kind: TurnKind) -> ErrorObject {
    let (turn_kind, what) = match kind {
        TurnKind::Review => (NonSteerableTurnKind::Review, "a review"),
        TurnKind::Compaction | TurnKind::Work | TurnKind::Shell => {
            (NonSteerableTurnKind::Compact, "to make the history short")
        }
    };
    let message =
        format!("the active turn is {what} and takes no input; try again once it has ended");
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
