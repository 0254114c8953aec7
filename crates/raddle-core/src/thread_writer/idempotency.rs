//! Commands that may be sent twice, and are executed once.

use std::fmt;
use std::sync::Arc;

use super::{Batch, ThreadWriter};
use crate::{
    Command, CommandOutcome, Event, IdempotencyKey, Refusal, Remembered, Thread, Timestamp,
};

/// Idempotency data of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotentRequest {
    /// Idempotency key of the command.
    pub key: IdempotencyKey,
    /// Hash of the request.
    pub request_hash: String,
    /// Renders the response, where it contains more than the outcome.
    pub render: Option<RenderResponse>,
}

/// Renders the response from the outcome of a command and the thread after it. It is called before
/// anything is stored, so that the response is stored with the records it describes.
#[derive(Clone)]
pub struct RenderResponse(Arc<RenderFn>);

type RenderFn = dyn Fn(&CommandOutcome, &Thread) -> Option<String> + Send + Sync;

impl RenderResponse {
    /// Creates a renderer; if it returns `None`, no response is stored.
    pub fn new(
        render: impl Fn(&CommandOutcome, &Thread) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(render))
    }
}

impl fmt::Debug for RenderResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RenderResponse")
    }
}

impl PartialEq for RenderResponse {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ThreadWriter {
    /// Stores the idempotency key of the request that creates a thread with the thread's first
    /// records.
    #[must_use]
    pub fn with_idempotency(mut self, request: IdempotentRequest, now: Timestamp) -> Self {
        if let Some(mut batch) = self.batch.take() {
            self.remember(&mut batch, &request, &CommandOutcome::Done {}, None, now);
            self.batch = Some(batch);
        }
        self
    }

    /// Decides a command that may be sent twice: a repeat gets the stored response.
    pub(super) fn command_once(
        &mut self,
        batch: &mut Batch,
        command: Command,
        request: &IdempotentRequest,
        now: Timestamp,
    ) -> Result<CommandOutcome, Refusal> {
        if let Some(stored_outcome) = self.thread.recall(&request.key, &request.request_hash, now) {
            return stored_outcome;
        }
        let outcome = self.command(batch, command, now)?;
        let render = request.render.as_ref();
        let answer = render.and_then(|render| (render.0)(&outcome, &self.thread));
        self.remember(batch, request, &outcome, answer.clone(), now);
        Ok(match answer {
            Some(answer) => CommandOutcome::Kept { answer },
            None => outcome,
        })
    }

    fn remember(
        &mut self,
        batch: &mut Batch,
        request: &IdempotentRequest,
        outcome: &CommandOutcome,
        answer: Option<String>,
        now: Timestamp,
    ) {
        let remembered = Remembered {
            key: request.key.clone(),
            asked: request.request_hash.clone(),
            outcome: serde_json::to_value(outcome).unwrap_or_default(),
            answer,
        };
        self.push(batch, vec![Event::Remembered(remembered).into()], now);
    }
}
