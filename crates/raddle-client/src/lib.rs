//! A client of the Raddle protocol: typed calls, followed threads, and automatic reconnection.
//!
//! [`Client::connect`] starts a server as a child process, or connects to one over a WebSocket, a
//! Unix socket or memory. [`Client::call`] makes any request of the method table. [`Client::start`]
//! and [`Client::resume`] return a [`ThreadFollower`]: the events of one thread, in order and each
//! exactly once, with a [`ThreadView`] of the current state. Requests of the server, such as
//! approvals, go to the [`RequestHandler`].
//!
//! When the connection breaks or the child dies, the client reconnects within the limits of
//! [`ReconnectPolicy`]. Every thread continues after the last record it received. A request that
//! changes a thread is sent again under the same idempotency key, so the server executes it once. A
//! question that the server repeats reaches the handler only once.
//!
//! ```no_run
//! use raddle_client::protocol::{Notification, ThreadStartParams};
//! use raddle_client::{Client, Options, Program, RejectAll, ServerAddress, ThreadEvent};
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let address = ServerAddress::Child(Program::new("raddle", ["app-server"]));
//! let client = Client::connect(address, Options::new("editor", "1"), RejectAll).await?;
//! let mut follow = client.start(ThreadStartParams::default()).await?;
//! follow.say("What is a raddle?").await?;
//! while let Some(event) = follow.next().await {
//!     if let ThreadEvent::Notification { notification, .. } = event
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
//! Memory is bounded: each follower queues up to 4 MiB of unread events. Then the client stops
//! reading the connection. If that would block another thread or a call, or after two seconds, it
//! discards the surplus and reads it from the server's journal once the queue has drained.
//!
//! Below: `raddle-protocol` and `raddle-rpc`. Above: user interfaces and programs that drive an
//! agent. It never links the server.

mod child;
mod client;
mod deferred_answers;
mod error;
mod event;
mod follower;
mod options;
mod queue;
mod request_handler;
mod server_address;
mod task;
mod view;

pub use client::{Client, Notice, Notices};
pub use deferred_answers::DeferredAnswers;
pub use error::{CallError, ConnectError};
pub use event::ThreadEvent;
pub use follower::ThreadFollower;
pub use options::{Options, ReconnectPolicy};
pub use raddle_protocol as protocol;
pub use raddle_rpc::{Connection, ConnectionLimits, ErrorObject, memory};
pub use request_handler::{HandlerAnswer, RejectAll, RequestHandler, ServerQuestion};
pub use server_address::{Dialer, Program, ServerAddress, Stderr};
pub use view::{OpenQuestion, ThreadHead, ThreadView};
