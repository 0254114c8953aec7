//! A call of the model ended, well or not.

use super::closing::Which;
use super::{Decision, Thread, closing, item_text};
use crate::{
    Body, EndModel, Event, Failure, FailureKind, ModelEnd, ModelEnded, Purpose, Refusal, Timestamp,
};

/// How often one question is put to the model before the turn fails.
pub(super) const ATTEMPTS_MAX: u32 = 10;

/// How long a call that broke off may wait to be tried again, whatever its vendor or a clock says.
fn retry_ms_max() -> i64 {
    crate::bugs::bound(60 * 60 * 1000, 5_000)
}

pub(super) fn decide(thread: &Thread, it: EndModel, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = item_text::of_call(thread, it.call)?;
    let purpose = turn.model.map(|model| model.purpose);
    let end = match it.end {
        ModelEnd::Broke { error, .. } if turn.attempts >= ATTEMPTS_MAX => ModelEnd::Failed {
            error: Failure {
                message: format!("gave up after {ATTEMPTS_MAX} attempts: {}", error.message),
                kind: FailureKind::TooManyAttempts,
                details: error.details,
            },
        },
        ModelEnd::Broke { error, retry_at } => ModelEnd::Broke {
            error,
            retry_at: retry_at.min(now.plus_ms(retry_ms_max())),
        },
        ModelEnd::Done {} if purpose == Some(Purpose::Compact) && !turn.compacted => {
            ModelEnd::Failed {
                error: Failure {
                    message: "the model gave no summary of the history".to_owned(),
                    kind: FailureKind::Other,
                    details: None,
                },
            }
        }
        end => end,
    };
    let mut bodies = Vec::new();
    if matches!(end, ModelEnd::Done {}) {
        // Tools it asked for come next; texts it left open are as long as they will get.
        for open in turn.items.iter().filter(|open| open.is_text()) {
            let last = closing::last_form(open, crate::ItemStatus::Completed, now);
            bodies.push(closing::completed(turn, last));
        }
    } else {
        let which = Which::OfCall(it.call);
        bodies.extend(closing::end_items(thread, turn, which, None, now));
    }
    bodies.push(Body::from(Event::ModelEnded(ModelEnded {
        turn: turn.id.clone(),
        call: it.call,
        end,
        usage: it.usage,
    })));
    Ok(bodies.into())
}
