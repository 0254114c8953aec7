//! Models: one stream of typed events, whoever the vendor is.
//!
//! A [`Wire`] is a way to speak to vendors: it writes a question and reads the answer. [`scripted`] is a
//! vendor that says what a script tells it. A provider never sees tools or threads.
//!
//! Below: nothing of Raddle. Above: `raddle`, which ties it to the agent.

mod chat;
mod error;
mod event;
mod gemini;
mod growing;
mod http;
mod io;
mod listing;
mod messages;
pub mod oauth;
mod patience;
mod question;
mod responses;
pub mod retry;
pub mod scripted;
mod sse;
mod stream;
mod usage;
mod vendor;
mod wire;

pub use error::{CallError, Fault, VendorError};
pub use event::{CallForm, Event, ItemKind, Tokens};
pub use http::{Client, Endpoint, EndpointError};
pub use io::{Dial, Dialling, Io};
pub use listing::Listed;
pub use patience::Limits;
pub use question::{Part, Question, Told, Tool};
pub use responses::Request;
pub use sse::Decoder;
pub use stream::{ITEMS_MAX, Reading, Stream};
pub use wire::Wire;
