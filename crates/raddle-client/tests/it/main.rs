//! The client against the real server in memory, with a way between them that can be cut.

mod examples;
mod place;
mod questions;
mod rejoin;
/// A model that follows a script.
#[path = "../../../raddle-server/tests/it/script.rs"]
mod script;
mod slow;
mod stage;
