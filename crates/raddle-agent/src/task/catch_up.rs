//! Slow or returning subscribers, caught up from the journal at their own pace.

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

/// Maximum bytes of one journal read for a subscriber.
const PAGE_BYTES: usize = 256 << 10;

/// Maximum time that the thread waits for subscribers to read their last pages.
const LAST_PAGES: Duration = Duration::from_secs(2);

/// A subscriber of the thread.
pub(super) struct Subscription {
    /// Unique, even among subscriptions of the same subscriber.
    number: u64,
    pub(super) subscriber: Arc<dyn Subscriber>,
    closed: ClosedFlag,
    /// Set while it catches up from the journal.
    catch_up: Option<CatchUp>,
}

/// The task's side of a catch-up.
struct CatchUp {
    /// Events that are not records. They are delivered after all records.
    notices: Notices,
    job: AbortHandle,
}

/// Whether the subscription is removed. Locked during each delivery, so that none follows the
/// removal.
type ClosedFlag = Arc<Mutex<bool>>;

/// The subscribers that catch up.
#[derive(Default)]
pub(super) struct CatchUps {
    next_number: u64,
    jobs: JoinSet<(CatchUpJob, ReadProgress)>,
    /// Jobs that have read all records that were stored at the time; the task delivers the rest
    /// itself.
    nearly_done: Vec<CatchUpJob>,
    /// Sequence number up to which jobs may read: the last one that the writer knows to be stored.
    stored: Arc<AtomicU64>,
}

impl Subscription {
    pub(super) fn is(&self, subscriber: &Arc<dyn Subscriber>) -> bool {
        Arc::ptr_eq(&self.subscriber, subscriber)
    }

    /// Delivers a record, or a request about one, unless the subscriber catches up and will read
    /// it. Returns false if the subscriber is gone.
    pub(super) fn deliver(&self, delivery: &Delivery) -> bool {
        match self.catch_up {
            None => self.subscriber.deliver(delivery),
            Some(_) => true,
        }
    }

    /// Delivers an event that is not a record.
    pub(super) fn notice(&self, notice: &Delivery) -> bool {
        match &self.catch_up {
            None => self.subscriber.deliver(notice),
            Some(catch_up) => catch_up.notices.put(notice.clone()),
        }
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.catch_up.is_some()
    }

    /// Whether its catch-up job has ended unexpectedly.
    fn is_lost(&self) -> bool {
        let catch_up = self.catch_up.as_ref();
        catch_up.is_some_and(|it| it.notices.is_disconnected())
    }

    /// Removes the subscription. No delivery follows.
    pub(super) fn clear(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        if let Some(catch_up) = &self.catch_up {
            catch_up.job.abort();
        }
    }
}

impl Task {
    /// Switches subscribers without capacity to catch-up.
    pub(super) fn start_catch_ups(&mut self) {
        let Some(thread) = self.writer.stored_thread() else {
            return;
        };
        let stored = thread.head();
        self.catch_ups.stored.store(stored.0, Ordering::Release);
        let lacks_capacity = |subscription: &Subscription| {
            !subscription.is_catching_up() && !subscription.subscriber.has_capacity()
        };
        if !self.subscriptions.iter().any(lacks_capacity) {
            return;
        }
        let reader = Box::new(CatchUpReader::at_head(thread));
        let mut subscriptions = std::mem::take(&mut self.subscriptions);
        for subscription in subscriptions
            .iter_mut()
            .filter(|subscription| lacks_capacity(subscription))
        {
            tracing::debug!(after = %stored, "a slow client switches to catch-up");
            self.shared.counters.fell_behind.add(1);
            self.start_catch_up(subscription, reader.clone());
        }
        self.subscriptions = subscriptions;
    }

    /// Adds a returning subscriber, which first catches up after its cursor.
    pub(super) fn resubscribe(
        &mut self,
        subscriber: Arc<dyn Subscriber>,
        reader: Box<CatchUpReader>,
    ) {
        let stored = self.writer.stored();
        self.catch_ups.stored.store(stored.0, Ordering::Release);
        let mut subscription = self.catch_ups.subscription(subscriber);
        self.start_catch_up(&mut subscription, reader);
        self.subscriptions.push(subscription);
    }

    /// From here on the subscriber is served from the journal.
    fn start_catch_up(&mut self, subscription: &mut Subscription, reader: Box<CatchUpReader>) {
        let notices = Notices::default();
        let job = CatchUpJob {
            id: self.id,
            subscription: subscription.number,
            subscriber: subscription.subscriber.clone(),
            closed: subscription.closed.clone(),
            reader,
            pending: VecDeque::new(),
            notices: notices.clone(),
            journal: self.journal.clone(),
            blobs: self.blobs.clone(),
            stored: self.catch_ups.stored.clone(),
            is_deleted: false,
            is_complete: false,
        };
        let job = self.catch_ups.jobs.spawn(job.run());
        subscription.catch_up = Some(CatchUp { notices, job });
    }

    /// Handles a job that has nearly caught up, or whose subscriber has disconnected.
    pub(super) fn catch_up_ended(&mut self, joined: Result<(CatchUpJob, ReadProgress), JoinError>) {
        match joined {
            Ok((job, ReadProgress::Closed)) => self
                .subscriptions
                .retain(|it| it.number != job.subscription),
            Ok((job, _)) => self.catch_ups.nearly_done.push(job),
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(thread = %self.id, %error, "the catch-up of a slow client failed");
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

    /// Completes nearly finished catch-ups while no append runs, and switches them to live events.
    pub(super) async fn finish_catch_ups(&mut self) {
        while let Some(joined) = self.catch_ups.jobs.try_join_next() {
            self.catch_up_ended(joined);
        }
        let until = Instant::now() + LAST_PAGES;
        while self.writer.stored_thread().is_some()
            && let Some(mut job) = self.catch_ups.nearly_done.pop()
        {
            let rest = self.during(timeout_at(until, job.rest())).await;
            let (subscriptions, thread) = (&mut self.subscriptions, self.writer.stored_thread());
            // It may have unsubscribed since.
            let Some(subscription) = subscriptions
                .iter_mut()
                .find(|it| it.number == job.subscription)
            else {
                continue;
            };
            match (rest.unwrap_or(ReadProgress::Blocked), thread) {
                (ReadProgress::Closed, _) => self
                    .subscriptions
                    .retain(|it| it.number != job.subscription),
                (ReadProgress::Last, Some(thread)) => {
                    subscription.catch_up = None;
                    let CatchUpJob {
                        subscriber,
                        reader,
                        notices,
                        ..
                    } = job;
                    for request in reader.catch_up(thread) {
                        self.ask(request, Some(&*subscriber));
                    }
                    while let Some(notice) = notices.next() {
                        subscriber.deliver(&notice);
                    }
                }
                _ => {
                    let job_handle = self.catch_ups.jobs.spawn(job.run());
                    if let Some(catch_up) = &mut subscription.catch_up {
                        catch_up.job = job_handle;
                    }
                }
            }
        }
    }
}

impl CatchUps {
    /// Creates a subscription for live events.
    pub(super) fn subscription(&mut self, subscriber: Arc<dyn Subscriber>) -> Subscription {
        self.next_number += 1;
        Subscription {
            number: self.next_number,
            subscriber,
            closed: ClosedFlag::default(),
            catch_up: None,
        }
    }

    /// Resolves when a job has nearly caught up, or its subscriber is gone.
    pub(super) async fn next(&mut self) -> Result<(CatchUpJob, ReadProgress), JoinError> {
        match self.jobs.join_next().await {
            Some(joined) => joined,
            None => std::future::pending().await,
        }
    }

    /// Detaches the jobs when the task ends. They read to the end of what is stored and deliver the
    /// last notices.
    pub(super) fn detach(&mut self) {
        let mut readers = std::mem::take(self);
        if readers.nearly_done.is_empty() && readers.jobs.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            loop {
                for job in readers.nearly_done.drain(..) {
                    readers.jobs.spawn(job.run());
                }
                match readers.jobs.join_next().await {
                    // It returned just before the task ended.
                    Some(Ok((job, ReadProgress::Last))) if !job.is_complete => {
                        readers.nearly_done.push(job);
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        });
    }
}
