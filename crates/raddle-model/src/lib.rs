//! Models: one stream of typed events for every vendor.
//!
//! A [`WireFormat`] is the protocol of a vendor: it encodes a question and decodes the answer.
//! [`scripted`] is a vendor that answers by a script. A provider never sees tools or threads.
//!
//! Below: nothing of Raddle. Above: `raddle-providers`, which connects it to the agent.

mod chat;
mod error;
mod event;
mod gemini;
mod http;
mod io;
mod listing;
mod messages;
pub mod oauth;
mod open_items;
mod public_address;
mod query;
mod responses;
pub mod retry;
pub mod scripted;
mod sse;
mod stream;
mod timeouts;
mod usage;
mod vendor_error;
mod wire;

pub use error::{CallError, VendorError, VendorFault};
pub use event::{CallForm, ItemKind, StreamEvent, Tokens};
pub use http::{Endpoint, EndpointError, ModelClient, ResponseBody, redacted};
pub use io::{Dial, DialFuture, Io};
pub use listing::ListedModel;
pub use public_address::is_public;
pub use query::{HistoryEntry, InputPart, ModelQuery, ToolDef};
pub use responses::ResponsesRequest;
pub use sse::{DecodeError, Decoder};
pub use stream::{AnswerReader, AnswerStream};
pub use timeouts::CallTimeouts;
pub use wire::{ITEMS_MAX, WireFormat};
