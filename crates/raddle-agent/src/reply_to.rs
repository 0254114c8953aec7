//! What is owed to whoever gives an order, and orders that come again.

use raddle_core::{CommandOutcome, IdempotencyKey, IdempotentRequest, Refusal, Thread, ThreadId};

use crate::task::CommandReply;
use crate::{AgentError, CommandResult, Threads};

/// An answer, and the same one again if the order came under a key.
pub struct ReplyTo {
    pub(crate) reply: CommandReply,
    pub(crate) idempotency: Option<IdempotentRequest>,
}

impl ReplyTo {
    /// An answer to an order that may come again.
    pub fn idempotent<F>(reply: F, keyed: IdempotentRequest) -> Self
    where
        F: FnOnce(CommandResult<'_>) + Send + 'static,
    {
        Self {
            reply: Box::new(reply),
            idempotency: Some(keyed),
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
    /// What came of an order when it came before under this key; nothing if it did not. The thread is only
    /// looked at; one that is deleted is out of the way when this says so.
    pub async fn recall(
        &self,
        id: ThreadId,
        key: &IdempotencyKey,
        asked: &str,
    ) -> Result<Option<Result<CommandOutcome, Refusal>>, AgentError> {
        let now = self.shared.now();
        loop {
            while let Some(handle) = self.shared.wait_live(id).await {
                let (key, asked) = (key.clone(), asked.to_owned());
                let look = move |thread: &Thread| {
                    let is_there = !thread.is_deleted();
                    is_there.then(|| thread.recall(&key, &asked, now))
                };
                // Without one its task has ended, and what comes after that is seen once it is no longer live.
                if let Ok(Some(found)) = handle.inspect(look).await {
                    return Ok(found);
                }
            }
            match self.peek(id).await {
                // What is left of it is in the way of another one under its id.
                Err(AgentError::Refused(Refusal::Deleted)) => drop(self.get(id).await?),
                peek => return Ok(peek?.thread.recall(key, asked, now)),
            }
        }
    }
}
