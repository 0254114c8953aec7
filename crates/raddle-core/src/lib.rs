//! The rules of a thread.
//!
//! A [`Thread`] is rebuilt by folding [`Record`]s. It decides the effect of a [`Command`] and lists
//! the [pending](Thread::pending) work. It never waits, reads a clock or reaches outside; callers
//! pass everything it needs. A [`ThreadWriter`] is the state machine of the one task that may write
//! a thread. It too has no I/O, so the simulator drives the code that ships.
//!
//! Below: `raddle-protocol`. Above: every crate that runs, shows or stores a thread.

mod bugs;
mod catch_up;
mod command;
mod context;
mod family;
mod hunks;
mod image_header;
mod notifications;
mod number;
pub mod policy;
pub mod ports;
mod price;
mod record;
mod refusal;
mod review;
mod thread;
mod thread_writer;

#[cfg(feature = "planted")]
pub use bugs::{Bug, plant, small_bounds};
pub use catch_up::CatchUpReader;
pub use command::*;
pub use context::{Context, ContextEntry, SharedEntry};
pub use family::Family;
pub use hunks::{ProposedHunk, hunk_path, proposed_hunks, report_of_decisions};
pub use image_header::ImageHeader;
pub use notifications::{
    ask, goal_view, item_view, list_view, may_call_answer, nano_usd, notification_of_goal,
    notification_of_usage, notifications_of, notifications_of_open_items, notifications_on_replay,
    open_item_view, queued_view, settings_view, status_view, turn_view, view,
};
pub use number::{Epoch, Seq, Timestamp};
pub use price::{Price, Rates};
pub use raddle_protocol::{ItemId, ThreadId, TurnId};
pub use record::*;
pub use refusal::{Refusal, Settlement};
pub use thread::{
    Base, CursorStatus, Effect, Goal, LastTurn, ModelUsage, OpenItem, OpenRequest, OpenTurn,
    POLICY, QueuedInput, Status, Thread, ToolRef, WaitReason, trust_answer,
};
pub use thread_writer::{
    Announcement, Envelope, IdempotentRequest, Inbox, Meter, MeteredUsage, RenderResponse, Step,
    SubscriptionStart, Tail, ThreadWriter, Token, WriterAction, WriterEnd, WriterNode, weight,
};
