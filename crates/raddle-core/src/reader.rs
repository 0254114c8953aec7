//! One who hears of a thread, at its own pace.

use crate::{Record, RequestNumber, Seq, Thread, Told, tell_again};

/// Someone who hears of a thread from the journal, because it takes less than comes, or has just come back.
///
/// Nothing is queued for it meanwhile. It keeps the thread as it knows it, so what it is told goes on exactly
/// from there, whatever the journal has merged or dropped since.
#[derive(Debug)]
pub struct Reader {
    thread: Thread,
    /// Requests from this number on were not put to it.
    asked: RequestNumber,
}

impl Reader {
    /// It was told all that this thread holds, and asked all that is asked; what comes, it reads.
    pub fn behind(thread: &Thread) -> Self {
        Self {
            thread: thread.clone(),
            asked: thread.next_request,
        }
    }

    /// It comes back: it knows this thread, and was asked nothing.
    pub fn returning(thread: Thread) -> Self {
        Self {
            thread,
            asked: RequestNumber::default(),
        }
    }

    /// The last record it was told. It reads what comes after.
    pub fn after(&self) -> Seq {
        self.thread.head()
    }

    /// The next record that the journal still has is told.
    pub fn read(&mut self, record: Record) -> Told {
        let notifications = tell_again(&mut self.thread, &record);
        Told {
            record,
            notifications,
        }
    }

    /// It was told all there is, and hears live from here on. An owner that lost its thread without knowing may
    /// have told others more; what the journal lost, it was never told. These are the requests that it was not asked,
    /// of those that are open in the thread as it is.
    pub fn catch_up(self, thread: &Thread) -> Vec<RequestNumber> {
        let open = thread.requests().map(|(number, _)| number);
        open.filter(|number| *number >= self.asked).collect()
    }
}
