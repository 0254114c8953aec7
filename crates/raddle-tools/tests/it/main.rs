//! What the tools do to real folders.

/// Patches, as data.
mod patch;
/// Folders and policies for the others.
mod support;
