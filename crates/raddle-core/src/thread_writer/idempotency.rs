//! Orders that may come twice, and are carried out once.

use std::fmt;
use std::sync::Arc;

use super::{Batch, ThreadWriter};
use crate::{
    Command, CommandOutcome, Event, IdempotencyKey, Refusal, Remembered, Thread, Timestamp,
};

/// What makes it safe to give an order again.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotentRequest {
    /// What makes it the same order.
    pub key: IdempotencyKey,
    /// A hash of what is asked under it.
    pub asked: String,
    /// What is answered, where that is more than what came of it.
    pub render: Option<RenderResponse>,
}

/// Says what is answered, of what came of an order and the thread as it is then. It is asked before anything is
/// stored, so that the answer is stored with what it tells.
#[derive(Clone)]
pub struct RenderResponse(Arc<RenderFn>);

type RenderFn = dyn Fn(&CommandOutcome, &Thread) -> Option<String> + Send + Sync;

impl RenderResponse {
    /// What this says; if it says nothing, no answer is kept.
    pub fn new(
        show: impl Fn(&CommandOutcome, &Thread) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(show))
    }
}

impl fmt::Debug for RenderResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shows")
    }
}

impl PartialEq for RenderResponse {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ThreadWriter {
    /// What a new thread is made for is remembered with its first records.
    #[must_use]
    pub fn with_idempotency(mut self, keyed: IdempotentRequest, now: Timestamp) -> Self {
        if let Some(mut batch) = self.batch.take() {
            self.remember(&mut batch, &keyed, &CommandOutcome::Done {}, None, now);
            self.batch = Some(batch);
        }
        self
    }

    /// Decides a command that may come twice: the second time it is answered as the first time.
    pub(super) fn command_once(
        &mut self,
        batch: &mut Batch,
        command: Command,
        keyed: &IdempotentRequest,
        now: Timestamp,
    ) -> Result<CommandOutcome, Refusal> {
        if let Some(before) = self.thread.recall(&keyed.key, &keyed.asked, now) {
            return before;
        }
        let outcome = self.command(batch, command, now)?;
        let shows = keyed.render.as_ref();
        let answer = shows.and_then(|shows| (shows.0)(&outcome, &self.thread));
        self.remember(batch, keyed, &outcome, answer.clone(), now);
        Ok(match answer {
            Some(answer) => CommandOutcome::Kept { answer },
            None => outcome,
        })
    }

    fn remember(
        &mut self,
        batch: &mut Batch,
        keyed: &IdempotentRequest,
        outcome: &CommandOutcome,
        answer: Option<String>,
        now: Timestamp,
    ) {
        let remembered = Remembered {
            key: keyed.key.clone(),
            asked: keyed.asked.clone(),
            outcome: serde_json::to_value(outcome).unwrap_or_default(),
            answer,
        };
        self.push(batch, vec![Event::Remembered(remembered).into()], now);
    }
}
