//! Notifications of open items for a client that subscribes during a turn.

use raddle_protocol::Notification;

use super::{item, notification_of_delta, started, usage};
use crate::{Delta, Thread, Usage};

/// Returns notifications for everything that is open, as if it began now and reached its state in
/// one step.
pub fn notifications_of_open_items(thread: &Thread) -> Vec<Notification> {
    let (Some(id), Some(turn)) = (thread.id(), thread.turn()) else {
        return Vec::new();
    };
    let mut notifications = Vec::new();
    for open in turn.items.iter().filter(|it| !it.item.is_hidden()) {
        let at_ms = open.item.started_at.0;
        notifications.push(started(id, &turn.id, item::open(&open.item), at_ms));
        let texts = open.texts.iter().filter(|(_, text)| !text.is_empty());
        notifications.extend(texts.filter_map(|(part, text)| {
            let whole = Delta {
                item: open.item.id.clone(),
                part: *part,
                offset: 0,
                text: text.clone(),
            };
            notification_of_delta(thread, id, &whole)
        }));
    }
    notifications
}

/// Returns the usage of the model calls, if there were any.
pub fn notification_of_usage(thread: &Thread) -> Option<Notification> {
    let turn = match (thread.turn(), thread.last_turn()) {
        (Some(turn), _) => &turn.id,
        (None, Some(turn)) => &turn.id,
        (None, None) => return None,
    };
    let is_known = thread.usage() != Usage::default();
    let called = (&thread.asked.model, &thread.asked.provider);
    Some(usage(thread, thread.id()?, turn, called, thread.updated_at)).filter(|_| is_known)
}
