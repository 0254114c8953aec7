//! Those who take less than comes, or come back after they were away: they are told from the journal, at their
//! own pace.

mod job;
mod notices;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raddle_core::CatchUpReader;
use raddle_protocol::ThreadClosedNotification;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use self::job::{CatchUpJob, ReadProgress};
use self::notices::Notices;
use super::Task;
use crate::{Delivery, Subscriber};

/// How much of the journal is read for one of them at a time.
const PAGE_BYTES: usize = 256 << 10;

/// How long a thread waits for the last pages of those who have nearly caught up.
const LAST_PAGES: Duration = Duration::from_secs(2);

/// Someone who hears of the thread.
pub(super) struct Subscription {
    /// No other seat has it, also of the same listener.
    number: u64,
    pub(super) subscriber: Arc<dyn Subscriber>,
    closed: ClosedFlag,
    /// Set while it reads for itself.
    catch_up: Option<CatchUp>,
}

/// What the thread keeps of one who reads for itself.
struct CatchUp {
    /// What is no record, and is heard after all that is.
    notices: Notices,
    job: AbortHandle,
}

/// Whether nobody sits there any more. Held while something is said, so that nothing is said afterwards.
type ClosedFlag = Arc<Mutex<bool>>;

/// Those who read for themselves.
#[derive(Default)]
pub(super) struct CatchUps {
    next_number: u64,
    jobs: JoinSet<(CatchUpJob, ReadProgress)>,
    /// Those who have nearly caught up.
    nearly: Vec<CatchUpJob>,
    /// How far they may read: what is stored, as the owner knows.
    stored: Arc<AtomicU64>,
}

impl Subscription {
    pub(super) fn is(&self, listener: &Arc<dyn Subscriber>) -> bool {
        Arc::ptr_eq(&self.subscriber, listener)
    }

    /// Says what is a record, or a question about one: who reads for itself comes to it. False when nobody
    /// hears it any more.
    pub(super) fn deliver(&self, heard: &Delivery) -> bool {
        match self.catch_up {
            None => self.subscriber.deliver(heard),
            Some(_) => true,
        }
    }

    /// Says what is no record.
    pub(super) fn notice(&self, notice: &Delivery) -> bool {
        match &self.catch_up {
            None => self.subscriber.deliver(notice),
            Some(behind) => behind.notices.put(notice.clone()),
        }
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.catch_up.is_some()
    }

    /// Whether it reads for itself no more although it should.
    fn is_lost(&self) -> bool {
        let behind = self.catch_up.as_ref();
        behind.is_some_and(|it| it.notices.is_alone())
    }

    /// Nobody sits here any more, and nothing more is said here.
    pub(super) fn clear(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        if let Some(behind) = &self.catch_up {
            behind.job.abort();
        }
    }
}

impl Task {
    /// Whoever has no room for what comes next reads it for itself.
    pub(super) fn start_catch_ups(&mut self) {
        let Some(thread) = self.owner.settled() else {
            return;
        };
        let stored = thread.head();
        self.catch_ups.stored.store(stored.0, Ordering::Release);
        let falls = |seat: &Subscription| !seat.is_catching_up() && !seat.subscriber.has_capacity();
        if !self.subscriptions.iter().any(falls) {
            return;
        }
        let known = Box::new(CatchUpReader::at_head(thread));
        let mut seats = std::mem::take(&mut self.subscriptions);
        for seat in seats.iter_mut().filter(|seat| falls(seat)) {
            tracing::debug!(thread = %self.id, after = %stored, "a client reads slowly");
            self.shared.counters.fell_behind.add(1);
            self.start_catch_up(seat, known.clone());
        }
        self.subscriptions = seats;
    }

    /// Someone comes back who was told a part: it reads what it missed.
    pub(super) fn let_return(&mut self, listener: Arc<dyn Subscriber>, reader: Box<CatchUpReader>) {
        let stored = self.owner.stored();
        self.catch_ups.stored.store(stored.0, Ordering::Release);
        let mut seat = self.catch_ups.subscription(listener);
        self.start_catch_up(&mut seat, reader);
        self.subscriptions.push(seat);
    }

    /// From here on who sits there is told from the journal.
    fn start_catch_up(&mut self, seat: &mut Subscription, reader: Box<CatchUpReader>) {
        let notices = Notices::default();
        let reading = CatchUpJob {
            id: self.id,
            subscription: seat.number,
            subscriber: seat.subscriber.clone(),
            closed: seat.closed.clone(),
            reader,
            pending: VecDeque::new(),
            notices: notices.clone(),
            journal: self.journal.clone(),
            blobs: self.blobs.clone(),
            stored: self.catch_ups.stored.clone(),
            is_deleted: false,
            is_told: false,
        };
        let reading = self.catch_ups.jobs.spawn(reading.run());
        seat.catch_up = Some(CatchUp {
            notices,
            job: reading,
        });
    }

    /// One has nearly caught up, or hears no more.
    pub(super) fn catch_up_ended(
        &mut self,
        reading: Result<(CatchUpJob, ReadProgress), JoinError>,
    ) {
        match reading {
            Ok((reading, ReadProgress::Closed)) => self
                .subscriptions
                .retain(|it| it.number != reading.subscription),
            Ok((reading, _)) => self.catch_ups.nearly.push(reading),
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(thread = %self.id, %error, "a client that read slowly was lost");
                let closed = ThreadClosedNotification { thread_id: self.id };
                let closed = Delivery::Notice(Arc::new(closed.into()));
                self.subscriptions.retain(|it| {
                    let is_lost = it.is_lost();
                    if is_lost {
                        it.subscriber.deliver(&closed);
                    }
                    !is_lost
                });
            }
        }
    }

    /// Those who have nearly caught up are told the rest while nothing is appended, and hear live again.
    pub(super) async fn finish_catch_ups(&mut self) {
        while let Some(reading) = self.catch_ups.jobs.try_join_next() {
            self.catch_up_ended(reading);
        }
        let until = Instant::now() + LAST_PAGES;
        while self.owner.settled().is_some()
            && let Some(mut reading) = self.catch_ups.nearly.pop()
        {
            let rest = self.during(timeout_at(until, reading.rest())).await;
            let (seats, thread) = (&mut self.subscriptions, self.owner.settled());
            // It may have left meanwhile.
            let Some(seat) = seats
                .iter_mut()
                .find(|it| it.number == reading.subscription)
            else {
                continue;
            };
            match (rest.unwrap_or(ReadProgress::Blocked), thread) {
                (ReadProgress::Closed, _) => self
                    .subscriptions
                    .retain(|it| it.number != reading.subscription),
                (ReadProgress::Last, Some(thread)) => {
                    seat.catch_up = None;
                    let CatchUpJob {
                        subscriber: listener,
                        reader,
                        notices,
                        ..
                    } = reading;
                    for request in reader.catch_up(thread) {
                        self.ask(request, Some(&*listener));
                    }
                    while let Some(notice) = notices.next() {
                        listener.deliver(&notice);
                    }
                }
                _ => {
                    let reading = self.catch_ups.jobs.spawn(reading.run());
                    if let Some(behind) = &mut seat.catch_up {
                        behind.job = reading;
                    }
                }
            }
        }
    }
}

impl CatchUps {
    /// A seat for someone who hears of the thread from here on.
    pub(super) fn subscription(&mut self, listener: Arc<dyn Subscriber>) -> Subscription {
        self.next_number += 1;
        Subscription {
            number: self.next_number,
            subscriber: listener,
            closed: ClosedFlag::default(),
            catch_up: None,
        }
    }

    /// Resolves when one has nearly caught up, or hears no more.
    pub(super) async fn next(&mut self) -> Result<(CatchUpJob, ReadProgress), JoinError> {
        match self.jobs.join_next().await {
            Some(reading) => reading,
            None => std::future::pending().await,
        }
    }

    /// The thread's task is over: they read to the end of what it stored, and are told its last words.
    pub(super) fn let_go(&mut self) {
        let mut readers = std::mem::take(self);
        if readers.nearly.is_empty() && readers.jobs.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            loop {
                for reading in readers.nearly.drain(..) {
                    readers.jobs.spawn(reading.run());
                }
                match readers.jobs.join_next().await {
                    // It came back just before.
                    Some(Ok((reading, ReadProgress::Last))) if !reading.is_told => {
                        readers.nearly.push(reading);
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        });
    }
}
