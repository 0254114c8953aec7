//! What a user of the tools could notice.

/// Command lines taken apart, and what comes of them.
mod shell;
