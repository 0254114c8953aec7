//! One who reads for itself, a page at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{Reader, Record, Seq, ThreadId, Told};
use raddle_protocol::{Notification, ThreadClosedNotification};

use super::super::AWAY;
use super::notices::Notices;
use super::{Left, PAGE_BYTES};
use crate::images::show_told;
use crate::{Heard, Listener};

/// One who reads for itself.
pub(in super::super) struct Reading {
    pub(super) id: ThreadId,
    pub(super) seat: u64,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) left: Left,
    pub(super) reader: Box<Reader>,
    /// What it is still to be told of the record it read last.
    pub(super) owed: VecDeque<(Notification, Option<Seq>)>,
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
pub(in super::super) enum Page {
    /// There is more.
    More,
    /// That was all that was stored when it was read.
    Last,
    /// There is no room, or the journal is away for a moment.
    Later,
    /// Nobody hears it, or nothing can be read.
    Never,
}

impl Reading {
    /// Reads until there is little left, and comes back; or, when the thread's task is over, to the end.
    pub(super) async fn run(mut self) -> (Self, Page) {
        loop {
            let Some(_room) = self.listener.room(PAGE_BYTES).await else {
                return (self, Page::Never);
            };
            let is_over = self.notices.is_alone();
            match self.page().await {
                Page::More | Page::Later => {}
                Page::Last if !is_over => return (self, Page::Last),
                last => {
                    self.hear_notices();
                    return (self, last);
                }
            }
        }
    }

    /// Tells all that is left.
    pub(super) async fn rest(&mut self) -> Page {
        loop {
            let page = self.page().await;
            if page != Page::More {
                return page;
            }
        }
    }

    async fn page(&mut self) -> Page {
        if !self.tell_owed().await {
            return Page::Never;
        }
        let stored = Seq(self.stored.load(Ordering::Acquire));
        let after = self.reader.after();
        let records = match self.journal.read(self.id, after, PAGE_BYTES).await {
            Ok(records) => records,
            Err(ReadError::Unavailable(_)) => {
                tokio::time::sleep(AWAY).await;
                return Page::Later;
            }
            Err(ReadError::NotFound) => return Page::Never,
            Err(error) => {
                tracing::warn!(thread = %self.id, %error, "a client that reads slowly cannot go on");
                let closed = ThreadClosedNotification { thread_id: self.id };
                self.say(&Heard::Notice(Arc::new(closed.into())));
                return Page::Never;
            }
        };
        let is_empty = records.is_empty();
        for record in records {
            // What the owner does not know to be stored is not told.
            if record.seq > stored {
                return Page::Last;
            }
            if !self.listener.has_room() {
                return Page::Later;
            }
            if !self.tell(record).await {
                return Page::Never;
            }
        }
        if is_empty || self.reader.after() >= stored {
            Page::Last
        } else {
            Page::More
        }
    }

    fn hear_notices(&mut self) {
        self.is_told = true;
        while let Some(notice) = self.notices.next() {
            let deleted = match &notice {
                Heard::Notice(notice) => matches!(**notice, Notification::ThreadDeleted(_)),
                _ => false,
            };
            // Who has read it need not hear it.
            if !(deleted && self.is_deleted) {
                self.say(&notice);
            }
        }
    }

    async fn tell(&mut self, record: Record) -> bool {
        let Told {
            record,
            notifications,
        } = self.reader.read(record);
        let count = notifications.len();
        let numbered = notifications.into_iter().enumerate();
        self.owed.extend(numbered.map(|(at, notification)| {
            let seq = (at + 1 == count).then_some(record.seq);
            (notification, seq)
        }));
        self.tell_owed().await
    }

    /// Says what is owed. Who stops waiting for this in the middle finds the rest still owed.
    async fn tell_owed(&mut self) -> bool {
        while let Some((notification, _)) = self.owed.front_mut() {
            show_told(&*self.blobs, notification).await;
            let Some((notification, seq)) = self.owed.pop_front() else {
                break;
            };
            self.is_deleted |= matches!(notification, Notification::ThreadDeleted(_));
            let told = Heard::Told {
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
    fn say(&self, heard: &Heard) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        !*left && self.listener.hear(heard)
    }
}
