//! The carriage: messages, framing and transports.
//!
//! Bytes come in over stdio, a websocket, a websocket on a unix socket, a socket between processes of one
//! home, or an in-memory pair;
//! [`Connection`] is all that anyone above sees of them. [`parse`] turns a frame into a request, a
//! notification or a response, strictly and in one pass; [`Outgoing`] carries frames back, bounded
//! in bytes.
//!
//! Below: nothing of Raddle's. Above: server, client, plugin. It knows no method name.

mod auth;
mod board;
mod connection;
mod doors;
mod encode;
mod hatch;
mod http;
mod limits;
mod line;
mod lines;
mod listen;
mod loss;
mod memory;
mod message;
mod outgoing;
mod reach;
mod socket;
mod stdio;
mod visit;
mod watch;
mod websocket;

pub use auth::{Auth, AuthError, SignedBearer};
pub use board::{Board, Notice, Page, Readers};
pub use connection::{Connection, Frame, Incoming, Peer, Transport};
pub use doors::{Door, DoorError, Doors};
pub use encode::{answer, notification, refusal, request};
pub use hatch::{DialError, Hatch, dial};
pub use limits::{Limits, raise_descriptor_limit};
pub use lines::Lines;
pub use listen::{Listen, ListenError};
pub use loss::Loss;
pub use memory::memory;
pub use message::{
    ErrorObject, Fault, Id, Inbound, Noise, Notification, Request, Response, code, parse,
};
pub use outgoing::{Close, Hold, Outgoing, Written};
pub use reach::{ReachError, reach, reach_unix};
pub use stdio::{pipes, stdin_end, stdio};
pub use watch::Watch;
