//! One task per live thread.
//!
//! A task runs the [`ThreadWriter`](raddle_core::ThreadWriter) of `raddle-core`. It appends the
//! records that the writer emits, then sends replies and notifications and starts pending effects.
//! It names no concrete store, model or tool.
//!
//! Below: `raddle-core`. Above: `raddle-server`.

mod asked_folders;
mod commands;
mod context;
mod counters;
mod environment;
mod error;
mod estimate;
mod fork;
mod health;
mod hooks;
mod images;
mod instructions;
mod interrupts;
mod liveness;
mod open;
mod pages;
mod reply_to;
mod skills;
mod subscriber;
mod task;
mod thread_blobs;
mod thread_images;
mod threads;
mod tool_gate;
mod tool_name_rules;
mod tools;
mod work;

pub use commands::{SubscribeRequest, UnsubscribeResult, UserCommand};
pub use counters::{CounterCell, Counters, LabeledCounter, ProviderTokens, Timings, token_kinds};
pub use environment::Instructions;
pub use error::AgentError;
pub use fork::{ForkOrigin, ForkPoint, ForkRequest, TurnWithNext};
pub use health::JournalHealth;
pub use images::{IMAGES_BYTES_MAX, ImageError, NewImage};
pub use interrupts::WaitingInterrupt;
pub use liveness::{Liveness, SoleNode};
pub use pages::{ListedThread, Ownership, PeekResult};
pub use reply_to::{AppliedCommand, CommandResult, ReplyTo};
pub use skills::NoSkills;
pub use subscriber::{Delivery, Permit, Subscriber};
pub use threads::{Handle, Options, SubscribeResult, Threads};
pub use tool_gate::{FixedRules, NoTools, NoWebhook};
pub use tools::{NAME_BYTES_MAX, ToolsError, client_tools, is_tool_name};

/// Target of all spans of this crate, so that one filter selects them; docs/operating.md names it.
const SPANS: &str = "raddle_agent::spans";
