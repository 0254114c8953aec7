//! What a user of the tools could notice.

/// Diffs of texts whose lines repeat.
mod diff;
/// The tools that read, list, search, write and edit.
mod files;
/// Patches, as data.
mod patch;
/// Paths that must lead nowhere else.
mod paths;
/// Links that are put in place of files while these are written.
mod race;
/// Command lines taken apart, and what comes of them.
mod shell;
/// Folders and policies for the others.
mod support;
/// What a whole turn changed.
mod turn;
/// A plain reader of unified diffs.
mod unified;
