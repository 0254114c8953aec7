//! Catch-up of a slow or reconnecting subscriber from the journal.

use crate::{
    Announcement, Event, ItemId, Record, RecordBody, RequestNumber, Seq, Thread,
    notifications_on_replay,
};

/// Reads a thread from the journal for a subscriber that is too slow or has just reconnected.
///
/// Nothing is queued for the subscriber while it reads. The reader keeps the thread as the
/// subscriber knows it, so its notifications continue exactly from there, whatever the journal has
/// merged or dropped since.
#[derive(Clone, Debug)]
pub struct CatchUpReader {
    thread: Thread,
    /// First request number that the subscriber has not received.
    first_unsent: RequestNumber,
    /// Items that the subscriber received in part and that are complete by now. Their deltas, and
    /// with them the subscriber's position, are deleted. So it receives nothing more of them until
    /// the complete item.
    complete: Vec<ItemId>,
}

impl CatchUpReader {
    /// Creates a reader for a subscriber that has received everything in this thread, requests
    /// included.
    pub fn at_head(thread: &Thread) -> Self {
        Self {
            thread: thread.clone(),
            first_unsent: thread.next_request,
            complete: Vec::new(),
        }
    }

    /// Creates a reader for a subscriber that reconnects. It knows the thread as in `thread`, has
    /// received no requests, and `now` is the thread's current state.
    pub fn returning(thread: Thread, now: &Thread) -> Self {
        let known = thread.turn.iter().flat_map(|turn| &turn.items);
        let known = known.map(|open| open.item.id.clone());
        Self {
            complete: known.filter(|id| now.open_item(id).is_none()).collect(),
            thread,
            first_unsent: RequestNumber::default(),
        }
    }

    /// Number of the last record that the subscriber received; reading continues after it.
    pub fn after(&self) -> Seq {
        self.thread.head()
    }

    /// Turns the next record of the journal into an announcement.
    pub fn read(&mut self, record: Record) -> Announcement {
        let notifications = if self.waits_for_whole(&record) {
            self.thread.apply(&record);
            Vec::new()
        } else {
            notifications_on_replay(&mut self.thread, &record)
        };
        Announcement {
            record,
            notifications,
        }
    }

    /// Whether this is text of an item that the subscriber will receive complete later.
    fn waits_for_whole(&self, record: &Record) -> bool {
        let item = match &record.body {
            RecordBody::Delta(delta) => Some(&delta.item),
            RecordBody::Event(event) => match &**event {
                Event::ItemSaved(it) => Some(&it.item),
                _ => None,
            },
        };
        item.is_some_and(|item| self.complete.contains(item))
    }

    /// Ends the catch-up: the subscriber has received everything and continues live. Returns the
    /// requests open in `thread` that it has not received. A former owner that lost the thread
    /// unknowingly may have announced more to other subscribers; this one never received what the
    /// journal lost.
    pub fn catch_up(self, thread: &Thread) -> Vec<RequestNumber> {
        let open = thread.requests().map(|(number, _)| number);
        open.filter(|number| *number >= self.first_unsent).collect()
    }
}
