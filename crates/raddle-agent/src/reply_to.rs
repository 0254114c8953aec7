//! Replies to commands.

use raddle_core::{CommandOutcome, IdempotentRequest, Thread};

use crate::AgentError;

/// A command that was applied.
#[derive(Debug)]
pub struct AppliedCommand<'a> {
    /// Outcome to report to the caller.
    pub outcome: CommandOutcome,
    /// The thread after the command.
    pub thread: &'a Thread,
}

/// Result of a command.
pub type CommandResult<'a> = Result<AppliedCommand<'a>, AgentError>;

/// Replies to a caller synchronously, before subscribers are notified of the command's effects.
pub(crate) type CommandReply = Box<dyn FnOnce(CommandResult<'_>) + Send>;

/// The reply to a command, with the idempotency key if the command has one.
pub struct ReplyTo {
    pub(crate) reply: CommandReply,
    pub(crate) idempotency: Option<IdempotentRequest>,
}

impl ReplyTo {
    /// Creates the reply to a command that may be repeated.
    pub fn idempotent<F>(reply: F, request: IdempotentRequest) -> Self
    where
        F: FnOnce(CommandResult<'_>) + Send + 'static,
    {
        Self {
            reply: Box::new(reply),
            idempotency: Some(request),
        }
    }
}

impl<F> From<F> for ReplyTo
where
    F: FnOnce(CommandResult<'_>) + Send + 'static,
{
    fn from(reply: F) -> Self {
        Self {
            reply: Box::new(reply),
            idempotency: None,
        }
    }
}
