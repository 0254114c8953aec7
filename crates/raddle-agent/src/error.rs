//! The error of the agent.

use raddle_core::Refusal;
use raddle_core::ports::ReadError;

/// Reason why a thread cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The thread rejected the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another live process owns it.
    #[error(
        "another running process owns the thread (node {node}); use the thread there, or end that process and try again"
    )]
    OwnedBy {
        /// Name of that process.
        node: String,
    },
    /// A hook rejected the input, for this reason.
    #[error("a hook rejected the input: {0}")]
    RejectedByHook(String),
    /// An interrupt came while a hook was checking the input.
    #[error("the input was not accepted, because an interrupt came while a hook was checking it")]
    InputInterrupted,
    /// The journal was not available in time.
    #[error("the journal is not available; try again")]
    Unavailable,
    /// The thread is archived, so no client subscribes to it, forks it or adds to its queue.
    #[error("the thread is archived; restore it with thread/unarchive first")]
    Archived,
    /// The thread does not fit into memory.
    #[error("the thread is too long for a copy in memory; fork it without `ephemeral`")]
    TooLong,
    /// The task ended before it replied.
    #[error("the thread's task has ended; try again")]
    Ended,
}
