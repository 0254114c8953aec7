//! The launcher with real programs: their results, and that no process is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

/// The program of these tests as the keeper.
mod keeper;
/// Programs that resist being ended.
mod unruly;

/// No process of the unruly programs is left.
mod leftovers;
/// A keeper without rights.
mod rights;
/// Start, end, input and output of programs.
mod run;
