//! The rules of a thread.
//!
//! A [`Thread`] is rebuilt by folding [`Record`]s. It decides what a [`Command`] means, says what work
//! is [pending](Thread::pending), and never waits, reads a clock or reaches outside; callers pass what
//! it needs. An [`Owner`] is the round of the one task that may write a thread: it too is a state
//! machine without I/O, so the simulator drives what ships.
//!
//! Below: `raddle-protocol`. Above: everyone who runs, shows or stores a thread.

mod bugs;
mod command;
mod context;
mod family;
mod number;
mod owner;
mod picture;
pub mod policy;
pub mod ports;
mod price;
mod reader;
mod record;
mod refusal;
mod tell;
mod thread;

#[cfg(feature = "planted")]
pub use bugs::{Bug, plant, small_bounds};
pub use command::*;
pub use context::{Context, Entry, Piece};
pub use family::Family;
pub use number::{Epoch, Seq, Timestamp};
pub use owner::{
    Ended, Envelope, Inbox, Keyed, Meter, Metered, Node, Out, Owner, Settled, Shows, Step, Tail,
    Token, Told, weight,
};
pub use picture::PictureHead;
pub use price::{Price, Rates};
pub use raddle_protocol::{ItemId, ThreadId, TurnId};
pub use reader::Reader;
pub use record::*;
pub use refusal::{Refusal, Settlement};
pub use tell::{
    ask, goal_view, item_view, list_view, may_call_answer, nano_usd, open_item_view, queued_view,
    settings_view, status_view, tell, tell_again, tell_goal, tell_open, tell_usage, turn_view,
    view,
};
pub use thread::{
    About, Account, Base, Cursor, Effect, Goal, LastTurn, OpenItem, OpenRequest, OpenTurn, POLICY,
    Past, Queued, Status, Thread, WaitingFor,
};
