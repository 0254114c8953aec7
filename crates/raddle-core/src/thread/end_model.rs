//! The end of a model call, good or bad.

use super::closing::ItemSelection;
use super::{Decision, OpenTurn, Thread, closing, item_text};
use crate::{
    EndModel, Event, Failure, FailureKind, ModelEnd, ModelEnded, Purpose, RecordBody, Refusal,
    Timestamp,
};

/// Maximum attempts at one call before the turn fails.
pub(super) const ATTEMPTS_MAX: u32 = 10;

/// Limit: consecutive times that a history is shortened because it exceeds the model's window;
/// beyond it, the turn ends with `contextWindowExceeded`.
///
/// Each time, a smaller part of the history is summarised.
const OVERFLOWS_MAX: u32 = 4;

/// Longest wait for a vendor while there is a fallback.
const FALLBACK_WAIT_MS_MAX: i64 = 30_000;

/// Maximum retries in one turn, over all calls.
fn retries_max() -> u32 {
    crate::bugs::bound(100, 8)
}

/// Maximum wait before a retry, even if the vendor asks for more or the clock was set.
fn retry_ms_max() -> i64 {
    crate::bugs::bound(60 * 60 * 1000, 5_000)
}

pub(super) fn decide(thread: &Thread, it: EndModel, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = item_text::turn_of_call(thread, it.call)?;
    let purpose = turn.model.map(|model| model.purpose);
    let end = match it.end {
        ModelEnd::Broke { error, .. } if !error.kind.class().is_retryable() => {
            ModelEnd::Failed { error }
        }
        ModelEnd::Broke { error, .. } if turn.attempts >= ATTEMPTS_MAX => {
            gave_up(&format!("after {ATTEMPTS_MAX} attempts"), error)
        }
        ModelEnd::Broke { error, .. } if turn.retries >= retries_max() => {
            let retries = turn.retries;
            gave_up(&format!("after {retries} retries in this turn"), error)
        }
        ModelEnd::Broke { error, retry_at } => ModelEnd::Broke {
            error,
            retry_at: retry_at.min(now.plus_ms(retry_ms_max())),
        },
        ModelEnd::Done {} if purpose == Some(Purpose::Compact) && !turn.compacted => {
            ModelEnd::Failed {
                error: Failure::new(
                    FailureKind::Other,
                    "the model returned no summary of the history",
                ),
            }
        }
        end => end,
    };
    let end = with_fallback(thread, turn, end, now);
    let mut bodies = Vec::new();
    if matches!(end, ModelEnd::Done {}) {
        // The tools of the call come next; open texts are final.
        for open in turn.items.iter().filter(|open| open.is_text()) {
            let last = open.last_form(crate::ItemStatus::Completed, now);
            bodies.push(closing::completed(turn, last));
        }
    } else {
        let selection = ItemSelection::OfCall(it.call);
        bodies.extend(closing::end_items(thread, turn, selection, None, now));
    }
    bodies.push(RecordBody::from(Event::ModelEnded(ModelEnded {
        turn: turn.id.clone(),
        call: it.call,
        end,
        usage: it.usage,
        estimated: it.estimated,
        nano_usd: it
            .price
            .zip(it.usage)
            .map(|(price, usage)| price.of(&usage)),
    })));
    Ok(bodies.into())
}

/// Replaces a failure where possible: by a shorter history, or by another model.
fn with_fallback(thread: &Thread, turn: &OpenTurn, end: ModelEnd, now: Timestamp) -> ModelEnd {
    let next = thread.settings.fallback.get(turn.fallen);
    match (end, next) {
        (ModelEnd::Failed { error }, _)
            if error.kind == FailureKind::ContextFull && turn.overflows < OVERFLOWS_MAX =>
        {
            ModelEnd::Overflowed { error }
        }
        (ModelEnd::Failed { error }, Some(to)) if error.kind.may_fall_back() => {
            let to = to.clone();
            ModelEnd::Rerouted { error, to }
        }
        // A vendor that asks for a long wait is not waited for while there is a fallback.
        (ModelEnd::Broke { error, retry_at }, Some(to))
            if retry_at > now.plus_ms(FALLBACK_WAIT_MS_MAX) =>
        {
            let to = to.clone();
            ModelEnd::Rerouted { error, to }
        }
        (end, _) => end,
    }
}

/// Turns a break into a failure without further retries.
fn gave_up(when: &str, error: Failure) -> ModelEnd {
    ModelEnd::Failed {
        error: Failure {
            message: format!("gave up {when}: {}", error.message),
            kind: FailureKind::TooManyAttempts,
            ..error
        },
    }
}
