//! Those who take less than comes: they are told from the journal, at their own pace.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{Reader, Record, Seq, ThreadId, Told};
use raddle_protocol::{Notification, ThreadClosedNotification};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::{AWAY, Task};
use crate::images::show_told;
use crate::{Heard, Listener};

/// How much of the journal is read for one of them at a time.
const PAGE_BYTES: usize = 256 << 10;

/// How long a thread waits for the last pages of those who have nearly caught up.
const LAST_PAGES: Duration = Duration::from_secs(2);

/// Someone who hears of the thread.
pub(super) struct Seat {
    /// No other seat has it, also of the same listener.
    number: u64,
    pub(super) listener: Arc<dyn Listener>,
    left: Left,
    /// Set while it reads for itself.
    behind: Option<Behind>,
}

/// What the thread keeps of one who reads for itself.
struct Behind {
    /// What is no record, and is heard after all that is.
    notices: mpsc::UnboundedSender<Heard>,
    reading: AbortHandle,
}

/// Whether nobody sits there any more. Held while something is said, so that nothing is said afterwards.
type Left = Arc<Mutex<bool>>;

/// Those who read for themselves.
#[derive(Default)]
pub(super) struct Readers {
    seats: u64,
    reading: JoinSet<(Reading, Page)>,
    /// Those who have nearly caught up.
    nearly: Vec<Reading>,
    /// How far they may read: what is stored, as the owner knows.
    stored: Arc<AtomicU64>,
}

/// One who reads for itself.
pub(super) struct Reading {
    id: ThreadId,
    seat: u64,
    listener: Arc<dyn Listener>,
    left: Left,
    reader: Box<Reader>,
    /// What it is still to be told of the record it read last.
    owed: VecDeque<(Notification, Option<Seq>)>,
    notices: mpsc::UnboundedReceiver<Heard>,
    journal: Arc<dyn Journal>,
    blobs: Arc<dyn Blobs>,
    stored: Arc<AtomicU64>,
    /// Whether it was told that the thread is deleted.
    is_deleted: bool,
    /// Whether it was told all there will ever be.
    is_told: bool,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// There is more.
    More,
    /// That was all that was stored when it was read.
    Last,
    /// There is no room, or the journal is away for a moment.
    Later,
    /// Nobody hears it, or nothing can be read.
    Never,
}

impl Seat {
    pub(super) fn is(&self, listener: &Arc<dyn Listener>) -> bool {
        Arc::ptr_eq(&self.listener, listener)
    }

    /// Says what is a record, or a question about one: who reads for itself comes to it. False when nobody
    /// hears it any more.
    pub(super) fn hear(&self, heard: &Heard) -> bool {
        match self.behind {
            None => self.listener.hear(heard),
            Some(_) => true,
        }
    }

    /// Says what is no record.
    pub(super) fn notice(&self, notice: &Heard) -> bool {
        match &self.behind {
            None => self.listener.hear(notice),
            Some(behind) => behind.notices.send(notice.clone()).is_ok(),
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether it reads for itself no more although it should.
    fn is_lost(&self) -> bool {
        let behind = self.behind.as_ref();
        behind.is_some_and(|it| it.notices.is_closed())
    }

    /// Nobody sits here any more, and nothing more is said here.
    pub(super) fn clear(&self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = true;
        if let Some(behind) = &self.behind {
            behind.reading.abort();
        }
    }
}

impl Task {
    /// Whoever has no room for what comes next reads it for itself.
    pub(super) fn let_fall_behind(&mut self) {
        let Some(thread) = self.owner.settled() else {
            return;
        };
        let stored = thread.head();
        self.readers.stored.store(stored.0, Ordering::Release);
        for seat in &mut self.seats {
            if seat.behind.is_some() || seat.listener.has_room() {
                continue;
            }
            tracing::debug!(thread = %self.id, after = %stored, "a client reads slowly");
            self.shared.tally.fell_behind.add(1);
            let (notices, receiver) = mpsc::unbounded_channel();
            let reading = self.readers.reading.spawn(
                Reading {
                    id: self.id,
                    seat: seat.number,
                    listener: seat.listener.clone(),
                    left: seat.left.clone(),
                    reader: Box::new(Reader::behind(thread)),
                    owed: VecDeque::new(),
                    notices: receiver,
                    journal: self.journal.clone(),
                    blobs: self.blobs.clone(),
                    stored: self.readers.stored.clone(),
                    is_deleted: false,
                    is_told: false,
                }
                .run(),
            );
            seat.behind = Some(Behind { notices, reading });
        }
    }

    /// One has nearly caught up, or hears no more.
    pub(super) fn came_back(&mut self, reading: Result<(Reading, Page), JoinError>) {
        match reading {
            Ok((reading, Page::Never)) => self.seats.retain(|it| it.number != reading.seat),
            Ok((reading, _)) => self.readers.nearly.push(reading),
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(thread = %self.id, %error, "a client that read slowly was lost");
                let closed = ThreadClosedNotification { thread_id: self.id };
                let closed = Heard::Notice(Arc::new(closed.into()));
                self.seats.retain(|it| {
                    let is_lost = it.is_lost();
                    if is_lost {
                        it.listener.hear(&closed);
                    }
                    !is_lost
                });
            }
        }
    }

    /// Those who have nearly caught up are told the rest while nothing is appended, and hear live again.
    pub(super) async fn let_catch_up(&mut self) {
        while let Some(reading) = self.readers.reading.try_join_next() {
            self.came_back(reading);
        }
        let until = Instant::now() + LAST_PAGES;
        while self.owner.settled().is_some()
            && let Some(mut reading) = self.readers.nearly.pop()
        {
            let rest = self.during(timeout_at(until, reading.rest())).await;
            let (seats, thread) = (&mut self.seats, self.owner.settled());
            // It may have left meanwhile.
            let Some(seat) = seats.iter_mut().find(|it| it.number == reading.seat) else {
                continue;
            };
            match (rest.unwrap_or(Page::Later), thread) {
                (Page::Never, _) => self.seats.retain(|it| it.number != reading.seat),
                (Page::Last, Some(thread)) => {
                    seat.behind = None;
                    let Reading {
                        listener,
                        reader,
                        mut notices,
                        ..
                    } = reading;
                    for request in reader.catch_up(thread) {
                        self.ask(request, Some(&*listener));
                    }
                    while let Ok(notice) = notices.try_recv() {
                        listener.hear(&notice);
                    }
                }
                _ => {
                    let reading = self.readers.reading.spawn(reading.run());
                    if let Some(behind) = &mut seat.behind {
                        behind.reading = reading;
                    }
                }
            }
        }
    }
}

impl Readers {
    /// A seat for someone who hears of the thread from here on.
    pub(super) fn seat(&mut self, listener: Arc<dyn Listener>) -> Seat {
        self.seats += 1;
        Seat {
            number: self.seats,
            listener,
            left: Left::default(),
            behind: None,
        }
    }

    /// Resolves when one has nearly caught up, or hears no more.
    pub(super) async fn next(&mut self) -> Result<(Reading, Page), JoinError> {
        match self.reading.join_next().await {
            Some(reading) => reading,
            None => std::future::pending().await,
        }
    }

    /// The thread's task is over: they read to the end of what it stored, and are told its last words.
    pub(super) fn let_go(&mut self) {
        let mut readers = std::mem::take(self);
        if readers.nearly.is_empty() && readers.reading.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            loop {
                for reading in readers.nearly.drain(..) {
                    readers.reading.spawn(reading.run());
                }
                match readers.reading.join_next().await {
                    // It came back just before.
                    Some(Ok((reading, Page::Last))) if !reading.is_told => {
                        readers.nearly.push(reading);
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        });
    }
}

impl Reading {
    /// Reads until there is little left, and comes back; or, when the thread's task is over, to the end.
    async fn run(mut self) -> (Self, Page) {
        loop {
            let Some(_room) = self.listener.room(PAGE_BYTES).await else {
                return (self, Page::Never);
            };
            let is_over = self.notices.is_closed();
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
    async fn rest(&mut self) -> Page {
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
        while let Ok(notice) = self.notices.try_recv() {
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
