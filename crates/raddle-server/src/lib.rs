//! The server: what happens between a frame coming in and its answer going out.
//!
//! A [`Connection`](raddle_rpc::Connection) is served by one task. The gate lets a request in, its
//! lane puts it in order, its route finds the one handler of its name, and the handler hands it to a
//! room that answers when it is done. No room waits for a client.
//!
//! Below: `raddle-agent`, `raddle-protocol`, `raddle-rpc`, `raddle-sandbox`. Above: the binary. It opens no socket and no database.

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
