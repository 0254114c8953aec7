//! Those who take less than comes, or come back after they were away: they are told from the journal, at their
//! own pace.

mod notices;
mod reading;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raddle_core::Reader;
use raddle_protocol::ThreadClosedNotification;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use self::notices::Notices;
use self::reading::{Page, Reading};
use super::Task;
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
    notices: Notices,
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
            Some(behind) => behind.notices.put(notice.clone()),
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether it reads for itself no more although it should.
    fn is_lost(&self) -> bool {
        let behind = self.behind.as_ref();
        behind.is_some_and(|it| it.notices.is_alone())
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
        let falls = |seat: &Seat| !seat.is_behind() && !seat.listener.has_room();
        if !self.seats.iter().any(falls) {
            return;
        }
        let known = Box::new(Reader::behind(thread));
        let mut seats = std::mem::take(&mut self.seats);
        for seat in seats.iter_mut().filter(|seat| falls(seat)) {
            tracing::debug!(thread = %self.id, after = %stored, "a client reads slowly");
            self.shared.tally.fell_behind.add(1);
            self.let_read(seat, known.clone());
        }
        self.seats = seats;
    }

    /// Someone comes back who was told a part: it reads what it missed.
    pub(super) fn let_return(&mut self, listener: Arc<dyn Listener>, reader: Box<Reader>) {
        let stored = self.owner.stored();
        self.readers.stored.store(stored.0, Ordering::Release);
        let mut seat = self.readers.seat(listener);
        self.let_read(&mut seat, reader);
        self.seats.push(seat);
    }

    /// From here on who sits there is told from the journal.
    fn let_read(&mut self, seat: &mut Seat, reader: Box<Reader>) {
        let notices = Notices::default();
        let reading = Reading {
            id: self.id,
            seat: seat.number,
            listener: seat.listener.clone(),
            left: seat.left.clone(),
            reader,
            owed: VecDeque::new(),
            notices: notices.clone(),
            journal: self.journal.clone(),
            blobs: self.blobs.clone(),
            stored: self.readers.stored.clone(),
            is_deleted: false,
            is_told: false,
        };
        let reading = self.readers.reading.spawn(reading.run());
        seat.behind = Some(Behind { notices, reading });
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
                        notices,
                        ..
                    } = reading;
                    for request in reader.catch_up(thread) {
                        self.ask(request, Some(&*listener));
                    }
                    while let Some(notice) = notices.next() {
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
