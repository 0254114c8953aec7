//! Tries to break the core of Raddle, by seed and in virtual time.
//!
//! One 64-bit seed decides everything: sizes, what clients want, what the model says, what goes wrong
//! and when. The core's own task is driven against a model of the journal, and the promises of the
//! design are checked all along. A seed that fails is the report of a bug.

pub mod check;
pub mod client;
pub mod reach;
pub mod rng;
pub mod scenario;
pub mod script;
pub mod store;
pub mod world;

mod node;
mod picture;
mod run;
mod wish;
mod work;

pub use run::{Outcome, isolated, play, shrink};
