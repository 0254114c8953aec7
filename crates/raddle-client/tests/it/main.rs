//! The client against the real server in memory, with a way between them that can be cut.

mod examples;
mod harness;
mod questions;
mod rejoin;
/// A model that follows a script.
#[path = "../../../raddle-server/tests/it/script.rs"]
mod script;
mod server_address;
mod slow;
