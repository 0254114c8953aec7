//! A catch-up job: reads the journal for one subscriber, a page at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Announcement, CatchUpReader, Record, Seq, ThreadId};
use raddle_protocol::{Notification, ThreadClosedNotification};

use super::notices::Notices;
use super::{ClosedFlag, PAGE_BYTES};
use crate::images::show_in_notification;
use crate::task::RETRY_DELAY;
use crate::thread_blobs::ThreadBlobs;
use crate::{Delivery, Subscriber};

/// Catch-up of one subscriber.
pub(in crate::task) struct CatchUpJob {
    pub(super) id: ThreadId,
    pub(super) subscription: u64,
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) closed: ClosedFlag,
    pub(super) reader: Box<CatchUpReader>,
    /// Undelivered notifications of the last record that was read.
    pub(super) pending: VecDeque<(Notification, Option<Seq>)>,
    pub(super) notices: Notices,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) blobs: ThreadBlobs,
    /// Sequence number up to which it may read.
    pub(super) stored: Arc<AtomicU64>,
    /// Whether it delivered the deletion of the thread.
    pub(super) is_deleted: bool,
    /// Whether it delivered everything there will ever be.
    pub(super) is_complete: bool,
}

/// Result of reading a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::task) enum ReadProgress {
    /// There is more.
    More,
    /// All records that were stored at the time of the read.
    Last,
    /// The subscriber has no capacity, or the journal is unavailable.
    Blocked,
    /// The subscriber is gone, or the journal cannot be read.
    Closed,
}

impl CatchUpJob {
    /// Reads until few records are left, and returns; or to the end if the task is over.
    pub(super) async fn run(mut self) -> (Self, ReadProgress) {
        loop {
            let Some(_permit) = self.subscriber.reserve(PAGE_BYTES).await else {
                return (self, ReadProgress::Closed);
            };
            let is_over = self.notices.is_disconnected();
            match self.page().await {
                ReadProgress::More | ReadProgress::Blocked => {}
                ReadProgress::Last if !is_over => return (self, ReadProgress::Last),
                last => {
                    self.deliver_notices();
                    return (self, last);
                }
            }
        }
    }

    /// Delivers all remaining records.
    pub(in crate::task) async fn rest(&mut self) -> ReadProgress {
        loop {
            let page = self.page().await;
            if page != ReadProgress::More {
                return page;
            }
        }
    }

    async fn page(&mut self) -> ReadProgress {
        if !self.deliver_pending().await {
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
                tracing::warn!(thread = %self.id, %error, "the catch-up of a slow client cannot continue");
                let closed = ThreadClosedNotification { thread_id: self.id };
                self.deliver(&Delivery::Notice(Arc::new(closed.into())));
                return ReadProgress::Closed;
            }
        };
        let is_empty = records.is_empty();
        for record in records {
            // Deliver only records that the writer knows as stored.
            if record.seq > stored {
                return ReadProgress::Last;
            }
            if !self.subscriber.has_capacity() {
                return ReadProgress::Blocked;
            }
            if !self.deliver_record(record).await {
                return ReadProgress::Closed;
            }
        }
        if is_empty || self.reader.after() >= stored {
            ReadProgress::Last
        } else {
            ReadProgress::More
        }
    }

    fn deliver_notices(&mut self) {
        self.is_complete = true;
        while let Some(notice) = self.notices.next() {
            let deleted = match &notice {
                Delivery::Notice(notice) => matches!(**notice, Notification::ThreadDeleted(_)),
                _ => false,
            };
            // A subscriber that has read the record need not be notified again.
            if !(deleted && self.is_deleted) {
                self.deliver(&notice);
            }
        }
    }

    async fn deliver_record(&mut self, record: Record) -> bool {
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
        self.deliver_pending().await
    }

    /// Delivers the pending notifications. Cancel-safe: the rest stays pending.
    async fn deliver_pending(&mut self) -> bool {
        while let Some((notification, _)) = self.pending.front_mut() {
            show_in_notification(&self.blobs, notification).await;
            let Some((notification, seq)) = self.pending.pop_front() else {
                break;
            };
            self.is_deleted |= matches!(notification, Notification::ThreadDeleted(_));
            let delivery = Delivery::Record {
                notification: Arc::new(notification),
                seq,
            };
            if !self.deliver(&delivery) {
                return false;
            }
        }
        true
    }

    /// Delivers an event unless the subscription is removed. Returns false if the subscriber is
    /// gone.
    fn deliver(&self, delivery: &Delivery) -> bool {
        let is_closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        !*is_closed && self.subscriber.deliver(delivery)
    }
}
