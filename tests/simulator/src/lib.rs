//! Tries to break the core of Raddle, by seed and in virtual time.
//!
//! One 64-bit seed decides everything: sizes, the requests of clients, the output of the model, the
//! faults and their times. The core's own writer is driven against a model of the journal, and the
//! promises of the design are checked all along. A seed that fails is the report of a bug.

pub mod check;
pub mod client;
pub mod coverage;
pub mod hash;
pub mod results;
pub mod scenario;
pub mod script;
pub mod store;
pub mod world;

mod client_request;
mod client_view;
mod fleet;
mod hunks;
mod node;
mod run;
mod work;

pub use run::{RunOutcome, isolated, play, shrink};
