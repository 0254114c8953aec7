//! One task per live thread.
//!
//! A task runs the owner's round of `raddle-core`: it appends what the round hands out, then answers,
//! announces and starts what is owed. It names no concrete store, model or tool.
//!
//! Below: `raddle-core`. Above: `raddle-server`.

mod context;
mod estimate;
mod fork;
mod hands;
mod health;
mod images;
mod instructions;
mod listener;
mod named;
mod nodes;
mod open;
mod orders;
mod owed;
mod pages;
mod surroundings;
mod tally;
mod task;
mod threads;
mod tools;
mod work;

pub use fork::{Cut, Fork, Found};
pub use hands::{FixedRules, NoTools, NoWebhook};
pub use health::Answers;
pub use images::{IMAGES_BYTES_MAX, ImageError, Picture};
pub use listener::{Heard, Listener, Room};
pub use nodes::{Alone, Nodes};
pub use orders::{Newcomer, Unsubscribed, UsersLine};
pub use owed::Owed;
pub use pages::{Listed, Peek};
pub use surroundings::Instructions;
pub use tally::{Count, Counts, Shares, Tally, Times, token_kinds};
pub use threads::{AgentError, Done, Handle, Options, Ordered, Subscribed, Threads};
pub use tools::{NAME_BYTES_MAX, ToolsError, client_tools, is_tool_name};
