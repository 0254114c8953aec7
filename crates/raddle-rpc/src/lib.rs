//! The transport layer: messages, framing and transports.
//!
//! Bytes arrive over stdio, a websocket, a websocket on a unix socket, a socket between processes
//! with the same home directory, or an in-memory pair. The layers above see only [`Connection`].
//! [`parse`] turns a frame into a request, a notification or a response, strictly and in one pass.
//! [`Outgoing`] carries frames back, bounded in bytes.
//!
//! Below: no other Raddle crate. Above: server and client. It knows no method name.

mod admin_pages;
mod auth;
mod connect;
mod connection;
mod data_loss;
mod encode;
mod handshake;
mod http;
mod limits;
mod line_codec;
mod listen_address;
mod listeners;
pub mod marks;
mod memory;
mod message;
mod outgoing;
mod peer_listener;
mod platform;
mod socket;
mod socket_stream;
mod stdio;
mod watchdog;
mod websocket;

pub use admin_pages::{Access, AdminPages, HttpPage, LazyPage};
pub use auth::{Auth, AuthError, SignedBearer};
pub use connect::{WebsocketConnectError, connect, connect_unix};
pub use connection::{Connection, Frame, Incoming, Peer, Transport};
pub use data_loss::DataLoss;
pub use encode::{answer, notification, refusal, request};
pub use limits::{ConnectionLimits, raise_descriptor_limit};
pub use line_codec::LineCodec;
pub use listen_address::{ListenAddress, ListenAddressError};
pub use listeners::{Listener, ListenerError, Listeners};
pub use memory::memory;
pub use message::{
    DroppedFrame, ErrorObject, FrameError, Id, Inbound, InboundNotification, InboundRequest,
    InboundResponse, code, parse,
};
pub use outgoing::{Close, Outgoing, OutgoingPermit, WriterStep};
pub use peer_listener::{DialError, PeerListener, dial};
pub use stdio::{pipes, stdin_end, stdio};
pub use watchdog::Watchdog;
