//! Models: one stream of typed events, whoever the vendor is.
//!
//! So far one wire, OpenAI Responses, over plain HTTP. A provider never sees tools or threads.
//!
//! Below: nothing of Raddle. Above: `raddle`, which ties it to the agent.

mod http;
mod responses;
mod sse;

pub use http::{Endpoint, EndpointError};
pub use responses::{Event, ItemKind, Request, Stream, Tokens, stream};
pub use sse::Decoder;

/// What went wrong with a call, and what may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection came about, or it broke before an answer began. Trying again may help.
    #[error("cannot reach the model at {address}: {what}")]
    Connect {
        /// Where it should be.
        address: String,
        /// What the system says.
        what: String,
    },
    /// The vendor refused.
    #[error("the model's vendor answered {status}: {body}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said, cut short.
        body: String,
    },
    /// The answer broke off. Trying again may help.
    #[error("the model's answer broke off: {0}")]
    BrokeOff(String),
    /// The vendor reported a failure in the middle of its answer.
    #[error("{message}")]
    Failed {
        /// The vendor's word for it.
        code: Option<String>,
        /// What it said.
        message: String,
    },
    /// The answer is not what this wire's answers are.
    #[error("the model's answer cannot be read: {0}")]
    Malformed(String),
}

impl CallError {
    /// Whether the same call may work if it is made again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::BrokeOff(_) => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::Failed { .. } | Self::Malformed(_) => false,
        }
    }
}
