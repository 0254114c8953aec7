//! Requests that were carried out under a key, so that they can come again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Thread;
use crate::{CommandOutcome, IdempotencyKey, Refusal, Remembered, Timestamp};

/// How many are remembered.
const KEYS_MAX: usize = 1000;

/// How many bytes their answers may have together, beside the newest.
const BYTES_MAX: usize = 4 << 20;

/// How long they are remembered.
const MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// A request that was carried out under a key.
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
    /// What came of an order when it came before under this key, with this hash of what was asked.
    pub fn recall(
        &self,
        key: &IdempotencyKey,
        asked: &str,
        now: Timestamp,
    ) -> Option<Result<CommandOutcome, Refusal>> {
        let mut keys = self.keys.iter();
        let kept = keys.find(|kept| kept.key == *key && now.since(kept.at) <= MS_MAX)?;
        if kept.asked != asked {
            return Some(Err(Refusal::KeyReused));
        }
        if let Some(answer) = kept.answer.clone() {
            return Some(Ok(CommandOutcome::Kept { answer }));
        }
        let outcome = serde_json::from_value(kept.outcome.clone());
        Some(outcome.map_err(|_| Refusal::KeyReused))
    }

    pub(super) fn keep(&mut self, it: &Remembered, at: Timestamp) {
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
