//! The engine with real programs: what comes of them, and that nothing is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

/// These tests' own program as the keeper.
mod keeper;
/// Programs that do all they can to stay.
mod unruly;

/// Nothing is left of the unruly ones.
mod leftovers;
/// What a keeper without rights does.
mod rights;
/// How programs run and end, and what they read and write.
mod run;
