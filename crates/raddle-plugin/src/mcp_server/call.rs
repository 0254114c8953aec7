//! Running calls, and the response of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_rpc::{ErrorObject, Id, code};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::TurnReport;
use super::peer::McpPeer;

/// Limit: calls of `raddle mcp-server` that run at a time; beyond it, the call fails with an error.
const CALLS_MAX: usize = 64;

/// The calls that run, by the id of their request, each with its signal of cancellation.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<Id, watch::Sender<bool>>>);

/// Reason why a call does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallConflict {
    /// A request with this id runs.
    IdInUse,
    TooMany,
}

impl RunningCalls {
    /// Registers a call.
    pub(crate) fn add(&self, id: &Id) -> Result<watch::Receiver<bool>, CallConflict> {
        let mut calls = self.calls();
        if calls.contains_key(id) {
            return Err(CallConflict::IdInUse);
        }
        if calls.len() >= CALLS_MAX {
            return Err(CallConflict::TooMany);
        }
        let (sender, receiver) = watch::channel(false);
        calls.insert(id.clone(), sender);
        Ok(receiver)
    }

    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(call) = self.calls().get(id) {
            call.send_replace(true);
        }
    }

    pub(crate) fn cancel_all(&self) {
        for call in self.calls().values() {
            call.send_replace(true);
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Id, watch::Sender<bool>>> {
        // No code panics while holding the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The response that a call owes. Dropping it without a report sends an error.
#[derive(Debug)]
pub(crate) struct CallReply {
    pub(crate) peer: Arc<McpPeer>,
    pub(crate) running: Arc<RunningCalls>,
    pub(crate) id: Id,
    pub(crate) report: Option<TurnReport>,
}

impl CallReply {
    pub(crate) fn send(mut self, report: TurnReport) {
        self.report = Some(report);
    }
}

impl Drop for CallReply {
    fn drop(&mut self) {
        let call = self.running.calls().remove(&self.id);
        // A client ignores the response to a request that it has cancelled.
        if call.is_some_and(|it| *it.borrow()) {
            tracing::info!(id = %self.id, "a call of an MCP client was cancelled");
            return;
        }
        let is_error = self.report.as_ref().is_none_or(|it| it.is_error);
        tracing::info!(id = %self.id, is_error, "a call of an MCP client ended");
        match &self.report {
            Some(report) => self.peer.answer(&self.id, &result(report)),
            None => {
                let error = ErrorObject::new(code::INTERNAL, "the call failed; the log says more");
                self.peer.refuse(&self.id, &error);
            }
        }
    }
}

/// Returns the result of `tools/call`.
pub(crate) fn result(report: &TurnReport) -> Value {
    let mut result = json!({
        "content": [{ "type": "text", "text": report.text }],
        "isError": report.is_error,
    });
    if let Some(thread_id) = &report.thread_id {
        result["structuredContent"] = json!({ "threadId": thread_id, "content": report.text });
    }
    result
}
