//! A client of the wire: typed calls, threads that are followed, and a connection that comes back by itself.
//!
//! [`Client::connect`] starts a server as a child, or goes to one on a websocket, on a unix socket or in this
//! process. [`Client::call`] makes any request of the method table. [`Client::start`] and [`Client::resume`] give a
//! [`Follow`]: what happens in one thread, in order and each once, and beside it a [`View`] of the thread as it is by
//! then. What the server asks goes to [`Answers`].
//!
//! When the connection breaks, or the child dies, the client comes back within the bounds of [`Reconnect`]: every
//! thread goes on after the last record that was told, a request that changes a thread is sent again under the id
//! it had and so is done once, and a question that is asked again is not put to anyone twice.
//!
//! ```no_run
//! use raddle_client::protocol::{Notification, ThreadStartParams};
//! use raddle_client::{Client, Happening, Options, Place, Program, Refuse};
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let place = Place::Child(Program::new("raddle", ["app-server"]));
//! let client = Client::connect(place, Options::new("editor", "1"), Refuse).await?;
//! let mut follow = client.start(ThreadStartParams::default()).await?;
//! follow.say("What is a raddle?").await?;
//! while let Some(happening) = follow.next().await {
//!     if let Happening::Told { notification, .. } = happening
//!         && let Notification::TurnCompleted(it) = *notification
//!     {
//!         println!("{:?}: {:?}", it.turn.status, follow.thread().last_message());
//!         break;
//!     }
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Memory is bounded: of what happens in a thread and nobody takes, 4 MiB wait; then the connection is not read, and
//! if that would hold up something else, the rest is read from the server's journal when there is room.
//!
//! Below: `raddle-protocol` and `raddle-rpc`. Above: whoever shows or drives an agent. It never links the server.

mod child;
mod client;
mod error;
mod follower;
mod options;
mod queue;
mod request_handler;
mod retry;
mod server_address;
mod task;
mod view;

pub use client::{Client, Notice, Notices};
pub use error::{CallError, ConnectError};
pub use follower::{ThreadEvent, ThreadFollower};
pub use options::{Options, ReconnectPolicy};
pub use raddle_protocol as protocol;
pub use raddle_rpc::{Connection, ConnectionLimits, ErrorObject, memory};
pub use request_handler::{RejectAll, RequestHandler, ServerQuestion};
pub use server_address::{Dialer, Program, ServerAddress, Stderr};
pub use view::{OpenQuestion, ThreadHead, ThreadView};
