//! The server: the path of a request from the incoming frame to the outgoing response.
//!
//! One task serves a [`Connection`](raddle_rpc::Connection). The gate admits a request, its lane
//! orders it, and its route finds its handler. The handler passes it to a service, which responds
//! when it is done. No service waits for a client.
//!
//! Below: `raddle-agent`, `raddle-config`, `raddle-protocol`, `raddle-rpc` and `raddle-sandbox`.
//! Above: the binary. It opens no socket and no database.

mod call;
mod connection;
mod disk;
mod draining;
mod gate;
mod handler;
mod handlers;
mod idempotency;
mod lanes;
mod metrics;
mod options;
mod peers;
mod relay;
mod request_ids;
mod routes;
mod server;
mod services;
mod session;
mod spans;
mod status_pages;
mod wire_error;

pub use handlers::initialize::CONTRACT_VERSION;
pub use options::Options;
pub use peers::{PeerCaller, PeerNode, Peers};
pub use raddle_config::Paths;
pub use server::Server;
pub use services::agent_deps::{AgentDeps, AgentParts};
pub use services::config_problems::config_problems;
