//! The test kit that the trials share.
//!
//! A [`ChildGuard`] is a process that ends with the trial, also when the trial is killed. Servers
//! ([`StdioServer`], [`SocketServer`]), the [`MockModel`] and clients build on it. A trial with a
//! special need, such as a client that never reads, takes the parts and adds its own.
//!
//! Below: nothing of Raddle. The kit sees the binary and the wire from outside. Above: the trials,
//! the simulator and the tests of the crates.

mod fold;
mod message;
mod mock;
mod process;
mod rng;
mod server;
mod stdio;
mod websocket;

pub use fold::Fold;
pub use message::ServerMessage;
pub use mock::MockModel;
pub use process::{ChildGuard, app_server, append_to};
pub use rng::{Rng, hash};
pub use server::SocketServer;
pub use stdio::{StdioClient, StdioServer, TimedLine, TimedMessage};
pub use websocket::{Websocket, WebsocketEvent, now_us, upgrade};
