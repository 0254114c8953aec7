//! Integration tests of the tools.

/// Checkpoints of turns, and undo.
mod checkpoints;
/// Copies of workspaces, and applying their changes.
mod copies;
/// Diffs of texts with repeated lines.
mod diff;
/// The tools that read, list, search, write and edit.
mod files;
/// Changes that the user accepts hunk by hunk.
mod hunks;
/// Patches, from data files.
mod patch;
/// Paths that must not be misjudged.
mod paths;
/// Races with links that replace files while these are written.
mod race;
/// Parsing of command lines, and verdicts on them.
mod shell;
/// Workspaces and policies for the other modules.
mod support;
/// Diff of a whole turn.
mod turn;
/// A simple reader of unified diffs.
mod unified;
