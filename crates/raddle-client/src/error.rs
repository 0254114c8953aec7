//! What can go wrong, by what the caller can do about it.

use raddle_rpc::{ErrorObject, WebsocketConnectError, code};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be started or reached.
    #[error("the server cannot be reached: {0}")]
    NotThere(String),
    /// It was there and did not greet in time.
    #[error("the server did not greet in time; is it a server of this protocol?")]
    Silent,
    /// It ended before it greeted.
    #[error("the server ended before it greeted{}", ended(.0))]
    Ended(Option<String>),
    /// It does not take us.
    #[error("the server refused: {}", .0.message)]
    Refused(ErrorObject),
}

fn ended(how: &Option<String>) -> String {
    how.as_ref()
        .map_or_else(String::new, |how| format!(": {how}"))
}

impl From<WebsocketConnectError> for ConnectError {
    fn from(error: WebsocketConnectError) -> Self {
        Self::NotThere(error.to_string())
    }
}

impl From<std::io::Error> for ConnectError {
    fn from(error: std::io::Error) -> Self {
        Self::NotThere(error.to_string())
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server says no, and why.
    #[error("{} (code {})", .0.message, .0.code)]
    Refused(ErrorObject),
    /// The connection broke before the answer came, and nobody knows whether the request was done. Requests that
    /// change a thread and requests that only look are sent again instead.
    #[error("the connection was lost before the answer came; it may have been done")]
    Lost,
    /// The client is closed, or has given up coming back.
    #[error("the client is closed: {0}")]
    Closed(String),
    /// The request is longer than a server takes.
    #[error("the request has {bytes} bytes, and a server takes {bytes_max}; send less at once")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// This client follows the thread already; take the [`Follow`](crate::Follow) there is, or drop it first.
    #[error("this client follows the thread already")]
    AlreadyFollowed,
    /// The answer, or the request, is not what the method table says.
    #[error("the server answered in words that are not known here: {0}")]
    Malformed(String),
}

impl CallError {
    /// What the server said in `errorInfo` of the error's data, if it did.
    pub fn info(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.data.as_ref()?.get("errorInfo")?.as_str(),
            _ => None,
        }
    }

    /// Whether the server has too much to do, and may do the same later.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == code::OVERLOADED)
    }
}
