//! One who reads for itself, a page at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{Announcement, CatchUpReader, Record, Seq, ThreadId};
use raddle_protocol::{Notification, ThreadClosedNotification};

use super::super::RETRY_DELAY;
use super::notices::Notices;
use super::{ClosedFlag, PAGE_BYTES};
use crate::images::show_told;
use crate::{Delivery, Subscriber};

/// One who reads for itself.
pub(in super::super) struct CatchUpJob {
    pub(super) id: ThreadId,
    pub(super) subscription: u64,
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) closed: ClosedFlag,
    pub(super) reader: Box<CatchUpReader>,
    /// What it is still to be told of the record it read last.
    pub(super) pending: VecDeque<(Notification, Option<Seq>)>,
    pub(super) notices: Notices,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) blobs: Arc<dyn Blobs>,
    /// How far it may read.
    pub(super) stored: Arc<AtomicU64>,
    /// Whether it was told that the thread is deleted.
    pub(super) is_deleted: bool,
    /// Whether it was told all there will ever be.
    pub(super) is_told: bool,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ReadProgress {
    /// There is more.
    More,
    /// That was all that was stored when it was read.
    Last,
    /// There is no room, or the journal is away for a moment.
    Blocked,
    /// Nobody hears it, or nothing can be read.
    Closed,
}

impl CatchUpJob {
    /// Reads until there is little left, and comes back; or, when the thread's task is over, to the end.
    pub(super) async fn run(mut self) -> (Self, ReadProgress) {
        loop {
            let Some(_room) = self.subscriber.reserve(PAGE_BYTES).await else {
                return (self, ReadProgress::Closed);
            };
            let is_over = self.notices.is_alone();
            match self.page().await {
                ReadProgress::More | ReadProgress::Blocked => {}
                ReadProgress::Last if !is_over => return (self, ReadProgress::Last),
                last => {
                    self.hear_notices();
                    return (self, last);
                }
            }
        }
    }

    /// Tells all that is left.
    pub(super) async fn rest(&mut self) -> ReadProgress {
        loop {
            let page = self.page().await;
            if page != ReadProgress::More {
                return page;
            }
        }
    }

    async fn page(&mut self) -> ReadProgress {
        if !self.tell_owed().await {
            return ReadProgress::Closed;
        }
        let stored = Seq(self.stored.load(Ordering::Acquire));
        let after = self.reader.after();
        let records = match self.journal.read(self.id, after, PAGE_BYTES).await {
            Ok(records) => records,
            Err(ReadError::Unavailable(_)) => {
                tokio::time::sleep(RETRY_DELAY).await;
                return ReadProgress::Blocked;
            }
            Err(ReadError::NotFound) => return ReadProgress::Closed,
            Err(error) => {
                tracing::warn!(thread = %self.id, %error, "a client that reads slowly cannot go on");
                let closed = ThreadClosedNotification { thread_id: self.id };
                self.say(&Delivery::Notice(Arc::new(closed.into())));
                return ReadProgress::Closed;
            }
        };
        let is_empty = records.is_empty();
        for record in records {
            // What the owner does not know to be stored is not told.
            if record.seq > stored {
                return ReadProgress::Last;
            }
            if !self.subscriber.has_capacity() {
                return ReadProgress::Blocked;
            }
            if !self.tell(record).await {
                return ReadProgress::Closed;
            }
        }
        if is_empty || self.reader.after() >= stored {
            ReadProgress::Last
        } else {
            ReadProgress::More
        }
    }

    fn hear_notices(&mut self) {
        self.is_told = true;
        while let Some(notice) = self.notices.next() {
            let deleted = match &notice {
                Delivery::Notice(notice) => matches!(**notice, Notification::ThreadDeleted(_)),
                _ => false,
            };
            // Who has read it need not hear it.
            if !(deleted && self.is_deleted) {
                self.say(&notice);
            }
        }
    }

    async fn tell(&mut self, record: Record) -> bool {
        let Announcement {
            record,
            notifications,
        } = self.reader.read(record);
        let count = notifications.len();
        let numbered = notifications.into_iter().enumerate();
        self.pending.extend(numbered.map(|(at, notification)| {
            let seq = (at + 1 == count).then_some(record.seq);
            (notification, seq)
        }));
        self.tell_owed().await
    }

    /// Says what is owed. Who stops waiting for this in the middle finds the rest still owed.
    async fn tell_owed(&mut self) -> bool {
        while let Some((notification, _)) = self.pending.front_mut() {
            show_told(&*self.blobs, notification).await;
            let Some((notification, seq)) = self.pending.pop_front() else {
                break;
            };
            self.is_deleted |= matches!(notification, Notification::ThreadDeleted(_));
            let told = Delivery::Record {
                notification: Arc::new(notification),
                seq,
            };
            if !self.say(&told) {
                return false;
            }
        }
        true
    }

    /// Says something, unless its seat was left; false when nobody hears it any more.
    fn say(&self, heard: &Delivery) -> bool {
        let left = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        !*left && self.subscriber.deliver(heard)
    }
}
