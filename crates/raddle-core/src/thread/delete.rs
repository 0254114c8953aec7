//! Forgetting a thread. What runs in it ends first, so that nobody waits for it.

use super::{Decision, Thread, closing};
use crate::{Cause, Event, Timestamp, TurnEnd};

pub(super) fn decide(thread: &Thread, now: Timestamp) -> Decision {
    let mut bodies = Vec::new();
    if let Some(turn) = &thread.turn {
        let end = TurnEnd::Interrupted(Cause::Client { principal: None });
        bodies.extend(closing::end_all(thread, turn, end, now));
    }
    bodies.push(Event::Deleted.into());
    bodies.into()
}
