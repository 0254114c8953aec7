//! Taking and releasing ownership of a thread.

use super::{Decision, Thread, closing};
use crate::{Cause, Event, LEVEL, Own, Owned, RecordBody, Refusal, Timestamp, TurnEnd};

/// Writes the owner's barrier, and closes or recovers what the former owner left open.
pub(super) fn decide(thread: &Thread, own: Own, now: Timestamp) -> Result<Decision, Refusal> {
    let late = own.epoch <= thread.epoch();
    if late && !crate::bugs::planted(crate::bugs::Bug::LateEpoch) {
        return Err(Refusal::OwnedElsewhere);
    }
    let Own {
        epoch,
        node,
        head: found,
        reserved,
        recovery,
        fork,
        fails,
    } = own;
    let mut bodies = vec![RecordBody::from(Event::Owned(Owned {
        epoch,
        node,
        found,
        reserved,
        level: LEVEL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))];
    match (fork, &thread.turn) {
        (Some(fork), turn) => {
            bodies.push(Event::Forked(*fork).into());
            if let Some(turn) = turn {
                let end = TurnEnd::Interrupted(Cause::Forked {});
                bodies.extend(closing::end_all(thread, turn, end, now));
            }
        }
        (None, Some(turn)) if let Some(failure) = fails => {
            let end = TurnEnd::Failed(*failure);
            bodies.extend(closing::end_all(thread, turn, end, now));
        }
        (None, Some(turn)) => {
            let released = thread.owner.as_ref().is_none_or(|owner| owner.released);
            let lost = turn.owners_lost + u32::from(!released);
            bodies.extend(closing::recover(thread, turn, lost, recovery, now));
        }
        (None, None) => {}
    }
    Ok(bodies.into())
}

/// Gives up ownership cleanly, so that the next owner does not count this one as dead.
pub(super) fn release() -> Decision {
    vec![Event::Released {}.into()].into()
}
