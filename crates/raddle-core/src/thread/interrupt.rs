//! Stopping the turn that runs.

use super::{Decision, Thread, closing};
use crate::{Interrupt, Refusal, Timestamp};

/// A turn that is stopping already goes on stopping; whoever asks again waits for the same end.
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
