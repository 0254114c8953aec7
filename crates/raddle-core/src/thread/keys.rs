//! Requests that were executed under an idempotency key, so that a repeat gets the same result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Thread;
use crate::{CommandOutcome, IdempotencyKey, Refusal, Remembered, Timestamp};

/// Limit: idempotency keys that a thread remembers, for 24 hours; beyond it, the oldest is dropped;
/// its request would run again.
const KEYS_MAX: usize = 1000;

/// Limit: responses stored with idempotency keys; beyond it, the oldest is dropped; its request
/// would run again.
const BYTES_MAX: usize = 4 << 20;

/// Time for which a key is stored, in milliseconds.
const MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// A request that was executed under an idempotency key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RememberedOutcome {
    key: IdempotencyKey,
    asked: String,
    outcome: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    at: Timestamp,
}

impl RememberedOutcome {
    fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, String::len)
    }
}

impl Thread {
    /// Returns the outcome of an earlier request with this key and this hash of the request.
    pub fn recall(
        &self,
        key: &IdempotencyKey,
        request_hash: &str,
        now: Timestamp,
    ) -> Option<Result<CommandOutcome, Refusal>> {
        let mut keys = self.keys.iter();
        let entry = keys.find(|kept| kept.key == *key && now.since(kept.at) <= MS_MAX)?;
        if entry.asked != request_hash {
            return Some(Err(Refusal::KeyReused));
        }
        if let Some(answer) = entry.answer.clone() {
            return Some(Ok(CommandOutcome::Kept { answer }));
        }
        let outcome = serde_json::from_value(entry.outcome.clone());
        Some(outcome.map_err(|_| Refusal::KeyReused))
    }

    pub(super) fn remember(&mut self, it: &Remembered, at: Timestamp) {
        self.keys.push_back(RememberedOutcome {
            key: it.key.clone(),
            asked: it.asked.clone(),
            outcome: it.outcome.clone(),
            answer: it.answer.clone(),
            at,
        });
        let mut bytes: usize = self.keys.iter().map(RememberedOutcome::bytes).sum();
        while self.keys.len() > KEYS_MAX || (bytes > BYTES_MAX && self.keys.len() > 1) {
            bytes -= self.keys.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }
}
