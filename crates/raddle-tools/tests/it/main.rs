//! What a user of the tools could notice.

/// Patches, as data.
mod patch;
/// Command lines taken apart, and what comes of them.
mod shell;
/// Folders and policies for the others.
mod support;
