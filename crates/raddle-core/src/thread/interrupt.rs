//! Interrupt of the running turn.

use super::{Decision, Thread, closing};
use crate::{Interrupt, Refusal, Timestamp};

/// Stops the turn. If it is stopping already, a second interrupt waits for the same end.
pub(super) fn decide(thread: &Thread, it: Interrupt, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    if let Some(expected) = it.turn.filter(|expected| *expected != turn.id) {
        return Err(Refusal::OtherTurn {
            expected,
            found: turn.id.clone(),
        });
    }
    if turn.stopping.is_some() {
        return Ok(Vec::new().into());
    }
    Ok(closing::stop(thread, turn, it.cause, None, now).into())
}
