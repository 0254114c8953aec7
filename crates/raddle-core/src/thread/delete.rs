//! Deletion of a thread. Running work ends first, so that no caller waits for it.

use super::{Decision, Thread, closing};
use crate::{Cause, Delete, Event, Timestamp, TurnEnd};

pub(super) fn decide(thread: &Thread, it: Delete, now: Timestamp) -> Decision {
    let Delete { principal } = it;
    let mut bodies = Vec::new();
    if let Some(turn) = &thread.turn {
        let end = TurnEnd::Interrupted(Cause::Deleted {
            principal: principal.clone(),
        });
        bodies.extend(closing::end_all(thread, turn, end, now));
    }
    bodies.push(Event::Deleted { principal }.into());
    bodies.into()
}
