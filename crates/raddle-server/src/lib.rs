//! The server: what happens between a frame coming in and its answer going out.
//!
//! A [`Connection`](raddle_rpc::Connection) is served by one task. The gate lets a request in, its
//! lane puts it in order, its route finds the one handler of its name, and the handler hands it to a
//! room that answers when it is done. No room waits for a client.
//!
//! Below: `raddle-agent`, `raddle-protocol`, `raddle-rpc`, `raddle-sandbox`. Above: the binary. It opens no socket and no database.

mod board;
mod call;
mod connection;
mod disk;
mod gate;
mod handlers;
mod keyed;
mod lanes;
mod metrics;
mod relay;
mod rooms;
mod routes;
mod server;
mod session;
mod wire_error;

pub use relay::Neighbours;
pub use rooms::config::{
    ConfigError, ConfigModel, ConfigValue, ConfigWritten, Configuration, Override, presets,
    schema as config_schema,
};
pub use rooms::ground::{Commands, Ground};
pub use rooms::providers::{
    Chosen, KeyCommand, KeySource, OAuth, Preset, Provider, ProviderError, Providers, Secret,
    SignIn,
};
pub use rooms::threads::limits;
pub use rooms::vendors::{Offered, SignedIn, SigningIn, Vendors, Way};
pub use server::{Options, Paths, Server};
