//! Models: one stream of typed events, whoever the vendor is.
//!
//! So far one wire, OpenAI Responses, over plain HTTP; and [`scripted`], a vendor that says what a script
//! tells it. A provider never sees tools or threads.
//!
//! Below: nothing of Raddle. Above: `raddle`, which ties it to the agent.

mod error;
mod http;
mod io;
mod patience;
mod responses;
pub mod retry;
pub mod scripted;
mod sse;
mod vendor;

pub use error::{CallError, Fault, VendorError};
pub use http::{Client, Endpoint, EndpointError};
pub use io::{Dial, Dialling, Io};
pub use patience::Limits;
pub use responses::{CallForm, Event, ItemKind, Request, Stream, Tokens};
pub use sse::Decoder;
