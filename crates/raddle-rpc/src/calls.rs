//! Requests we made of a peer, waiting for its answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::{ErrorObject, Id, Outgoing, Response, request};

/// The open requests of one connection. Each is answered at most once; the first answer counts.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<Id, oneshot::Sender<Outcome>>,
    next: i64,
    ended: bool,
}

/// What came back, unread.
type Outcome = Result<Box<RawValue>, CallError>;

/// Why a request of ours has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The peer said no.
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    /// The peer answered, but not with what was asked for.
    #[error("unexpected answer: {0}")]
    Unexpected(#[from] serde_json::Error),
    /// The request cannot be written as JSON, so it was not sent.
    #[error("cannot write the request: {0}")]
    Unwritable(serde_json::Error),
    /// The connection ended first.
    #[error("connection closed")]
    Closed,
}

impl Calls {
    /// Asks the peer and waits. Dropping the future forgets the request; a late answer is ignored.
    pub async fn call<P, R>(
        &self,
        outgoing: &Outgoing,
        method: &str,
        params: &P,
    ) -> Result<R, CallError>
    where
        P: Serialize,
        R: DeserializeOwned,
    {
        let (id, answer) = self.open().ok_or(CallError::Closed)?;
        let forget = Forget { calls: self, id };
        let frame = request(&forget.id, method, params).map_err(CallError::Unwritable)?;
        outgoing.send(frame);
        let raw = tokio::select! {
            answer = answer => answer.map_err(|_| CallError::Closed)??,
            () = outgoing.when_gone() => return Err(CallError::Closed),
        };
        Ok(serde_json::from_str(raw.get())?)
    }

    /// Hands an answer to whoever waits for it; says whether anyone did.
    pub fn resolve(&self, response: Response<'_>) -> bool {
        let Some(waiting) = self.lock().waiting.remove(&response.id) else {
            return false;
        };
        let outcome = response
            .outcome
            .map(RawValue::to_owned)
            .map_err(CallError::Refused);
        waiting.send(outcome).is_ok()
    }

    /// The connection ended: everyone waiting is told, and nobody waits again.
    pub fn end(&self) {
        let mut open = self.lock();
        open.ended = true;
        open.waiting.clear();
    }

    fn open(&self) -> Option<(Id, oneshot::Receiver<Outcome>)> {
        let mut open = self.lock();
        if open.ended {
            return None;
        }
        let id = Id::Integer(open.next);
        open.next += 1;
        let (sender, receiver) = oneshot::channel();
        open.waiting.insert(id.clone(), sender);
        Some((id, receiver))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a request off the list when its caller stops waiting.
struct Forget<'a> {
    calls: &'a Calls,
    id: Id,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.calls.lock().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_written_is_not_waited_for() {
        let calls = Calls::default();
        let outgoing = Outgoing::new(1024);
        // JSON has no such keys.
        let params = HashMap::from([((1, 2), 3)]);
        let call = calls.call::<_, ()>(&outgoing, "ask", &params);
        let outcome = tokio::time::timeout(Duration::from_secs(1), call).await;
        let outcome = outcome.expect("nobody will ever answer this");
        assert!(
            matches!(outcome, Err(CallError::Unwritable(_))),
            "{outcome:?}"
        );
        assert!(calls.lock().waiting.is_empty());
        assert_eq!(outgoing.queued_bytes(), 0);
    }
}
