//! The client against the real server in memory, over a transport that can be cut.

mod examples;
mod harness;
mod questions;
mod rejoin;
/// A scripted model.
#[path = "../../../raddle-server/tests/it/script.rs"]
mod script;
mod server_address;
mod slow;
