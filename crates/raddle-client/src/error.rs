//! Errors, grouped by how the caller can react.

use std::fmt;
use std::process::ExitStatus;

use raddle_rpc::{ErrorObject, WebsocketConnectError, code};

/// Reason why [`Client::connect`](crate::Client::connect) failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be started or reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server did not answer `initialize` in time.
    #[error("the server did not answer initialize in time; is it a server of this protocol?")]
    TimedOut,
    /// The connection ended before the server answered `initialize`. For a child: its exit status.
    #[error("the server ended before it answered initialize{}", ended(.0))]
    Ended(Option<ExitStatus>),
    /// The server rejected `initialize`.
    #[error("the server refused: {}", .0.message)]
    Refused(ErrorObject),
}

fn ended(status: &Option<ExitStatus>) -> String {
    status
        .as_ref()
        .map_or_else(String::new, |status| format!(": {status}"))
}

impl ConnectError {
    /// The error of a connection to this address.
    pub(crate) fn unreachable(address: impl fmt::Display, error: &WebsocketConnectError) -> Self {
        Self::Unreachable(match error {
            // It names the address itself.
            WebsocketConnectError::Address(_) => error.to_string(),
            _ => format!("{address}: {error}"),
        })
    }
}

impl From<std::io::Error> for ConnectError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// Reason why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server rejected the request.
    #[error("{} (code {})", .0.message, .0.code)]
    Refused(ErrorObject),
    /// The connection broke before the response arrived, so the request may have been executed or
    /// not. Read-only requests and requests with an idempotency key are retried instead.
    #[error("the connection was lost before the response; the request may have been executed")]
    Lost,
    /// The client is closed, or has given up reconnecting.
    #[error("the client is closed: {0}")]
    Closed(String),
    /// The request is longer than
    /// [`Options::message_bytes_max`](crate::Options::message_bytes_max).
    #[error("the request has {bytes} bytes, but the limit is {bytes_max}; send less at once")]
    TooLong {
        /// Length of the request.
        bytes: usize,
        /// Maximum length of a request.
        bytes_max: usize,
    },
    /// This client follows the thread already. Use the existing
    /// [`ThreadFollower`](crate::ThreadFollower), or drop it first.
    #[error("this client already follows the thread; use that follower, or drop it first")]
    AlreadyFollowed,
    /// The request cannot be serialized, or the response does not match the method table.
    #[error("malformed request or response: {0}")]
    Malformed(String),
}

impl CallError {
    /// `errorInfo` of the error's data, if the server set it.
    pub fn info(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.data.as_ref()?.get("errorInfo")?.as_str(),
            _ => None,
        }
    }

    /// Whether the server is overloaded. The same request may succeed later.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == code::OVERLOADED)
    }
}
