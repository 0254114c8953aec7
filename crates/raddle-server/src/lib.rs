//! The server: the path of a request from the incoming frame to the outgoing response.
//!
//! One task serves a [`Connection`](raddle_rpc::Connection). The gate admits a request, its lane
//! orders it, and its route finds its handler. The handler passes it to a service, which responds
//! when it is done. No service waits for a client.
//!
//! Below: `raddle-agent`, `raddle-protocol`, `raddle-rpc`, `raddle-sandbox`. Above: the binary. It
//! opens no socket and no database.

mod call;
mod connection;
mod disk;
mod gate;
mod handlers;
mod idempotency;
mod lanes;
mod metrics;
mod relay;
mod routes;
mod server;
mod services;
mod session;
mod status_pages;
mod wire_error;

pub use relay::Peers;
pub use server::{Options, Paths, Server};
pub use services::agent_deps::{AgentDeps, CommandConfig};
pub use services::config::{
    ConfigError, ConfigModel, ConfigValue, Configuration, Override, WrittenValue, presets,
    schema as config_schema,
};
pub use services::providers::{
    KeyCommand, KeySource, OAuth, Preset, Provider, ProviderChoice, ProviderError, Providers,
    Secret, SignIn,
};
pub use services::threads::limits;
pub use services::vendors::{OfferedModel, PendingSignIn, SignInKind, SignInMethod, Vendors};
