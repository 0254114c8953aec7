//! The agent's built-in tools.
//!
//! Each tool states its intent, and acts once it is authorised. No tool decides on its own
//! authorisation, and none runs anything outside the thread's sandbox unless exactly that was
//! authorised.
//!
//! Below: `raddle-config`, `raddle-core`, `raddle-sandbox` and `raddle-workspace`. Above: `raddle-providers`, and
//! `raddle`, which hands them to the agent.

mod arguments;
mod checkpoints;
mod command;
mod file_call;
pub mod files;
mod mutex;
pub mod patch;
mod plan;
mod plugin_call;
mod registry;
mod review_diffs;
mod rights;
pub mod shell;
mod tool_call_error;
mod tool_deps;
mod truncation;
mod turn_diffs;

pub use checkpoints::{
    CheckpointOptions, CheckpointedTools, CopyFolders, FileCheckpoints, PruneSummary,
    prune_checkpoints, remove_checkpoints,
};
pub use command::workspaces;
pub use raddle_workspace::RetentionLimits;
pub use registry::{BuiltInTools, Options};
pub use tool_deps::{HostsError, Operator};
pub use turn_diffs::TurnDiffs;
