//! What is owed to whoever gives an order, and orders that come again.

use raddle_core::{Key, Keyed, Outcome, Refusal, ThreadId};

use crate::task::OrderReply;
use crate::{AgentError, Ordered, Threads};

/// An answer, and the same one again if the order came under a key.
pub struct Owed {
    pub(crate) reply: OrderReply,
    pub(crate) keyed: Option<Keyed>,
}

impl Owed {
    /// An answer to an order that may come again.
    pub fn keyed<F>(reply: F, keyed: Keyed) -> Self
    where
        F: FnOnce(Ordered<'_>) + Send + 'static,
    {
        Self {
            reply: Box::new(reply),
            keyed: Some(keyed),
        }
    }
}

impl<F> From<F> for Owed
where
    F: FnOnce(Ordered<'_>) + Send + 'static,
{
    fn from(reply: F) -> Self {
        Self {
            reply: Box::new(reply),
            keyed: None,
        }
    }
}

impl Threads {
    /// What came of an order when it came before under this key; nothing if it did not. The thread is only
    /// looked at.
    pub async fn recall(
        &self,
        id: ThreadId,
        key: &Key,
        asked: &str,
    ) -> Result<Option<Result<Outcome, Refusal>>, AgentError> {
        let now = self.shared.now();
        if let Some(handle) = self.shared.staying(id).await {
            let (key, asked) = (key.clone(), asked.to_owned());
            let looked = handle.look(move |thread| thread.recall(&key, &asked, now));
            if let Ok(found) = looked.await {
                return Ok(found);
            }
        }
        let peek = self.peek(id).await?;
        Ok(peek.thread.recall(key, asked, now))
    }
}
