//! Types of the wire protocol: methods, items, notifications, server requests.
//!
//! Every message is declared once, in one of three tables: [`METHODS`], [`NOTIFICATIONS`] and
//! [`SERVER_REQUESTS`]. The types that the tables name are here too, one file per subject. Wire
//! enums that a newer peer may extend keep unknown values and pass them on unchanged.
//!
//! Below: no other Raddle crate. Above: every crate that reads or writes the wire.

#[macro_use]
mod macros;

mod ids;
mod maybe;
#[macro_use]
pub mod table;
mod account;
mod approval;
mod brief;
mod budget;
mod checkpoint;
mod command;
mod config;
mod feature;
mod fs;
mod fuzzy_file_search;
mod goal;
mod hook;
mod initialize;
mod input;
mod item;
mod mcp;
mod model;
mod permission;
mod plugin;
mod process;
mod progress;
mod queue;
mod rate_limit;
mod skill;
mod terminal;
mod thread;
mod turn;
mod workspace;

/// Generators for the JSON Schema, the TypeScript types and the reference pages.
pub mod export;
pub mod extension;
pub mod methods;
mod notifications;
mod server_requests;

pub use account::*;
pub use approval::*;
pub use budget::*;
pub use checkpoint::*;
pub use command::*;
pub use config::*;
pub use feature::*;
pub use fs::*;
pub use fuzzy_file_search::*;
pub use goal::*;
pub use hook::*;
pub use ids::*;
pub use initialize::*;
pub use input::*;
pub use item::*;
pub use maybe::Maybe;
pub use mcp::*;
pub use methods::METHODS;
pub use model::*;
pub use notifications::*;
pub use permission::*;
pub use plugin::*;
pub use process::*;
pub use progress::*;
pub use queue::*;
pub use rate_limit::*;
pub use server_requests::*;
pub use skill::*;
pub use table::*;
pub use terminal::*;
pub use thread::*;
pub use turn::*;
pub use workspace::*;

use serde::{Deserialize, Deserializer};

/// Reads an explicit null as the default value, as if the member were absent.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A JSON value that is either a string or a `T`.
pub(crate) enum TextOr<T> {
    Text(String),
    Other(T),
}

/// Reads a string as [`TextOr::Text`] and any other value as `T`. A derived `untagged` enum does
/// not work here: it buffers values in a form that cannot carry the raw values of `tagged!`.
pub(crate) fn text_or<'de, D, T>(deserializer: D) -> Result<TextOr<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(TextOr::Text(text)),
        other => serde_json::from_value(other)
            .map(TextOr::Other)
            .map_err(serde::de::Error::custom),
    }
}
