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
//! Lines are found by their text, not by number. Models copy them with small mistakes, so the
//! search is exact first. It then ignores white space at the end of lines, white space around them,
//! and typography.

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
