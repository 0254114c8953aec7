//! Patches in the form that models of one family write, applied to files.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/lib.rs
//! @@ fn greet() {
//! -    "hello"
//! +    "good day"
//! *** End Patch
//! ```
//!
//! Lines are found by what they say, not by number. Models copy them with small mistakes, so lines are looked
//! for exactly first, then without regard to white space at their end, around them, and to typography.

mod command;
mod lines;
mod parse;
mod plan;
mod seek;
mod spec;

pub use command::{EmbeddedPatch, in_argv, in_command};
pub use parse::{Chunk, ChunkLine, PatchSections, Section, parse};
pub use plan::{PatchError, plan};
pub use spec::spec;
