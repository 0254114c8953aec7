//! The agent's own tools: what it can do to a workspace.
//!
//! Each tool says what it would do, and does it once it may. None of them decides whether it may, and none
//! runs anything outside the fence that the thread has, unless exactly that was allowed.
//!
//! Below: `raddle-core` and `raddle-sandbox`. Above: `raddle`, which hands them to the agent.

mod arguments;
mod command;
mod file_call;
pub mod files;
mod hex;
pub mod patch;
mod plan;
mod registry;
mod rights;
pub mod shell;
mod truncation;
mod turn_diffs;

pub use command::workspaces;
pub use registry::{BuiltInTools, Operator, Options};
