//! Errors of OAuth.

use std::io;

use raddle_config::PrivateFileError;
use raddle_model::CallError;
use raddle_model::oauth::RedirectError;
use tokio::task::JoinError;

use super::super::http::HttpError;

/// Reason why there is no access token for an MCP server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] HttpError),
    /// A server named an address that is not called.
    #[error("the server's OAuth names {address}, which is not called: {what}")]
    Refused { address: String, what: &'static str },
    /// A server's metadata cannot be used.
    #[error("the OAuth metadata at {address} cannot be used: {what}")]
    Metadata { address: String, what: String },
    /// The authorization server requires a client that is registered by hand.
    #[error(
        "the authorization server registers no clients; register one there, and set \
         `oauth.client_id` of the MCP server"
    )]
    NoRegistration,
    /// The authorization server reported an error.
    #[error("the authorization server at {address} reported: {what}")]
    Rejected { address: String, what: String },
    /// The authorization server cannot respond now.
    #[error("the authorization server at {address} responded with HTTP {status}; try again later")]
    Unavailable { address: String, status: u16 },
    /// The response of the authorization server is invalid.
    #[error("the authorization server at {address} sent a response that OAuth does not define")]
    Unexpected { address: String },
    /// The answer came from another issuer than the one that was asked.
    #[error("the answer came from {issuer}, another authorization server; log in again")]
    OtherIssuer { issuer: String },
    #[error("cannot listen for the browser")]
    Listen(#[source] io::Error),
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    #[error("the system has no randomness")]
    Random(#[source] CallError),
    #[error(transparent)]
    File(#[from] PrivateFileError),
    #[error("another process has been renewing the token of `{server}` for too long; end it")]
    LockTimeout { server: String },
    /// The thread that read or wrote panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

impl OauthError {
    /// Returns whether a later attempt with the same tokens may succeed.
    pub(super) fn is_transient(&self) -> bool {
        !matches!(
            self,
            Self::Rejected { .. } | Self::Refused { .. } | Self::Metadata { .. }
        )
    }
}
