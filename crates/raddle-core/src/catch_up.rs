//! One who hears of a thread, at its own pace.

use crate::{
    Announcement, Event, ItemId, Record, RecordBody, RequestNumber, Seq, Thread, tell_again,
};

/// Someone who hears of a thread from the journal, because it takes less than comes, or has just come back.
///
/// Nothing is queued for it meanwhile. It keeps the thread as it knows it, so what it is told goes on exactly
/// from there, whatever the journal has merged or dropped since.
#[derive(Clone, Debug)]
pub struct CatchUpReader {
    thread: Thread,
    /// Requests from this number on were not put to it.
    asked: RequestNumber,
    /// Items of which it was told a part and which are complete by now. How far it was told is gone with their
    /// deltas, so it is told nothing more of them before it comes to the whole.
    complete: Vec<ItemId>,
}

impl CatchUpReader {
    /// It was told all that this thread holds, and asked all that is asked; what comes, it reads.
    pub fn at_head(thread: &Thread) -> Self {
        Self {
            thread: thread.clone(),
            asked: thread.next_request,
            complete: Vec::new(),
        }
    }

    /// It comes back: it knows the thread as far as this, and was asked nothing. Meanwhile the thread has become
    /// what it is now.
    pub fn returning(thread: Thread, now: &Thread) -> Self {
        let known = thread.turn.iter().flat_map(|turn| &turn.items);
        let known = known.map(|open| open.item.id.clone());
        Self {
            complete: known.filter(|id| now.open_item(id).is_none()).collect(),
            thread,
            asked: RequestNumber::default(),
        }
    }

    /// The last record it was told. It reads what comes after.
    pub fn after(&self) -> Seq {
        self.thread.head()
    }

    /// The next record that the journal still has is told.
    pub fn read(&mut self, record: Record) -> Announcement {
        let notifications = if self.waits_for_whole(&record) {
            self.thread.apply(&record);
            Vec::new()
        } else {
            tell_again(&mut self.thread, &record)
        };
        Announcement {
            record,
            notifications,
        }
    }

    /// Whether this is text of an item of which it hears the whole later.
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

    /// It was told all there is, and hears live from here on. An owner that lost its thread without knowing may
    /// have told others more; what the journal lost, it was never told. These are the requests that it was not asked,
    /// of those that are open in the thread as it is.
    pub fn catch_up(self, thread: &Thread) -> Vec<RequestNumber> {
        let open = thread.requests().map(|(number, _)| number);
        open.filter(|number| *number >= self.asked).collect()
    }
}
