//! Replies to commands, and repeated commands.

use raddle_core::{CommandOutcome, IdempotencyKey, IdempotentRequest, Refusal, Thread, ThreadId};

use crate::task::CommandReply;
use crate::{AgentError, CommandResult, Threads};

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

impl Threads {
    /// Returns the earlier outcome of a command under this key, or `None` if there is none. The
    /// thread is only read. If the thread is deleted, its remains are removed before this returns.
    pub async fn recall(
        &self,
        id: ThreadId,
        key: &IdempotencyKey,
        fingerprint: &str,
    ) -> Result<Option<Result<CommandOutcome, Refusal>>, AgentError> {
        let now = self.shared.now();
        loop {
            while let Some(handle) = self.shared.wait_live(id).await {
                let (key, fingerprint) = (key.clone(), fingerprint.to_owned());
                let inspect = move |thread: &Thread| {
                    let exists = !thread.is_deleted();
                    exists.then(|| thread.recall(&key, &fingerprint, now))
                };
                // Otherwise the task has ended, and the next state shows once it is no longer live.
                if let Ok(Some(recalled)) = handle.inspect(inspect).await {
                    return Ok(recalled);
                }
            }
            match self.peek(id).await {
                // Its remains would block another thread with the same id.
                Err(AgentError::Refused(Refusal::Deleted)) => drop(self.get(id).await?),
                peek => return Ok(peek?.thread.recall(key, fingerprint, now)),
            }
        }
    }
}
