//! Errors of requests to an MCP server.

use std::time::Duration;

use raddle_model::CallError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::mcp::message_values::TooManyValues;

/// Error of the transport to an MCP server.
pub(super) type TransportError = StreamableHttpError<HttpError>;

/// Error of a request to an MCP server, other than an error that the server returned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The configured URL is invalid.
    #[error("`{url}` is not a valid url of an MCP server: {what}")]
    Url { url: String, what: &'static str },
    /// A configured header cannot be sent.
    #[error("the header `{name}` cannot be sent: {what}")]
    Header { name: String, what: &'static str },
    /// No connection, or it broke before a response began.
    #[error("cannot reach the MCP server at {address}: {what}")]
    Connect { address: String, what: String },
    /// The peer did not prove its identity.
    #[error("the MCP server at {address} is not trusted: {what}")]
    Untrusted { address: String, what: String },
    /// The connection broke in the middle of a response.
    #[error("the MCP server's response broke off: {0}")]
    BrokeOff(String),
    /// The response did not arrive in time.
    #[error("the MCP server did not respond within {} ms", limit.as_millis())]
    TimedOut { limit: Duration },
    /// The response exceeds its limit.
    #[error("the MCP server's response is longer than {bytes_max} bytes")]
    ResponseTooLong { bytes_max: usize },
    /// An event of a stream exceeds its limit.
    #[error("an event of the MCP server is longer than {bytes_max} bytes")]
    EventTooLong { bytes_max: usize },
    /// The response has more values than are parsed.
    #[error("the MCP server's response is rejected: {0}")]
    TooManyValues(#[from] TooManyValues),
    /// The server redirects to an address that is not followed.
    #[error("the MCP server redirects to {location}, {what}")]
    Redirect {
        location: String,
        what: &'static str,
    },
    /// The access token could not be read or renewed.
    #[error("no access token for the MCP server: {0}")]
    Token(String),
}

impl From<CallError> for HttpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Connect { address, what } => Self::Connect { address, what },
            CallError::Untrusted { address, what } => Self::Untrusted { address, what },
            CallError::Silent { limit } | CallError::TooLong { limit } => Self::TimedOut { limit },
            CallError::BrokeOff(what) | CallError::Malformed(what) => Self::BrokeOff(what),
            CallError::Vendor(error) => Self::BrokeOff(error.message),
        }
    }
}

impl From<HttpError> for TransportError {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}
