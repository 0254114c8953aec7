//! Slow or returning subscribers, caught up from the journal at their own pace.

mod job;
mod notices;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::{CatchUpReader, Seq, Thread, ThreadId};
use raddle_protocol::ThreadClosedNotification;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use self::job::{CatchUpJob, ReadProgress};
use self::notices::Notices;
use super::{Subscribers, ask_one};
use crate::task::Stores;
use crate::{Delivery, Subscriber};

/// Maximum bytes of one journal read for a subscriber.
const PAGE_BYTES: usize = 256 << 10;

/// A subscriber of the thread.
pub(super) struct Subscription {
    /// Unique, also among subscriptions of the same subscriber.
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

/// A job that returned, with the reason.
type JoinedJob = Result<(CatchUpJob, ReadProgress), JoinError>;

/// The subscribers that catch up.
pub(super) struct CatchUps {
    id: ThreadId,
    stores: Stores,
    next_number: u64,
    jobs: JoinSet<(CatchUpJob, ReadProgress)>,
    /// Jobs with few records left.
    nearly_done: Vec<CatchUpJob>,
    /// Sequence number up to which jobs may read: the last one that the writer knows as stored.
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

    /// Whether it receives the progress of a turn. A subscriber that catches up does not: it has
    /// older events to read.
    pub(super) fn receives_progress(&self) -> bool {
        !self.is_catching_up() && self.subscriber.wants_progress()
    }

    /// Whether it receives the events of plugins. A subscriber without capacity does not.
    pub(super) fn receives_plugin_events(&self) -> bool {
        self.has_capacity() && self.subscriber.wants_plugin_events()
    }

    /// Whether it can accept an event at once.
    pub(super) fn has_capacity(&self) -> bool {
        !self.is_catching_up() && self.subscriber.has_capacity()
    }

    fn lacks_capacity(&self) -> bool {
        !self.is_catching_up() && !self.subscriber.has_capacity()
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

impl Subscribers {
    /// Switches subscribers without capacity to catch-up after the stored thread. Returns their
    /// number.
    pub(in crate::task) fn start_catch_ups(&mut self, stored: &Thread) -> u64 {
        self.catch_ups.set_stored(stored.head());
        if !self.subscriptions.iter().any(Subscription::lacks_capacity) {
            return 0;
        }
        let reader = Box::new(CatchUpReader::at_head(stored));
        let mut count = 0;
        for subscription in &mut self.subscriptions {
            if subscription.lacks_capacity() {
                tracing::debug!(after = %stored.head(), "a slow client switches to catch-up");
                self.catch_ups.start(subscription, reader.clone());
                count += 1;
            }
        }
        count
    }

    /// Adds a returning subscriber, which first catches up after its cursor.
    pub(in crate::task) fn add_returning(
        &mut self,
        subscriber: Arc<dyn Subscriber>,
        reader: Box<CatchUpReader>,
        stored: Seq,
    ) {
        self.remove(&subscriber);
        self.is_known = true;
        self.catch_ups.set_stored(stored);
        let mut subscription = self.catch_ups.subscription(subscriber);
        self.catch_ups.start(&mut subscription, reader);
        self.subscriptions.push(subscription);
    }

    /// Resolves when a job has nearly caught up, or its subscriber is gone.
    pub(in crate::task) async fn next_catch_up(&mut self) -> JoinedJob {
        match self.catch_ups.jobs.join_next().await {
            Some(joined) => joined,
            None => std::future::pending().await,
        }
    }

    /// Handles a job that has nearly caught up, or whose subscriber is gone.
    pub(in crate::task) fn catch_up_ended(&mut self, joined: JoinedJob) {
        match joined {
            Ok((job, ReadProgress::Closed)) => self.remove_number(job.subscription),
            Ok((job, _)) => self.catch_ups.nearly_done.push(job),
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                let id = self.catch_ups.id;
                tracing::error!(thread = %id, %error, "the catch-up of a slow client failed");
                let closed = ThreadClosedNotification { thread_id: id };
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

    /// Handles all jobs that have returned.
    pub(in crate::task) fn join_catch_ups(&mut self) {
        while let Some(joined) = self.catch_ups.jobs.try_join_next() {
            self.catch_up_ended(joined);
        }
    }

    /// Returns a job with few records left, for [`finish_catch_up`](Self::finish_catch_up).
    pub(in crate::task) fn nearly_done(&mut self) -> Option<CatchUpJob> {
        self.catch_ups.nearly_done.pop()
    }

    /// Switches a subscriber to live events if its job has read the rest of the stored thread.
    /// Otherwise the job continues. `rest` is `None` if the read timed out.
    pub(in crate::task) fn finish_catch_up(
        &mut self,
        job: CatchUpJob,
        rest: Option<ReadProgress>,
        stored: Option<&Thread>,
    ) {
        let mut subscriptions = self.subscriptions.iter_mut();
        // It may have unsubscribed meanwhile.
        let Some(subscription) = subscriptions.find(|it| it.number == job.subscription) else {
            return;
        };
        match (rest, stored) {
            (Some(ReadProgress::Closed), _) => self.remove_number(job.subscription),
            (Some(ReadProgress::Last), Some(thread)) => {
                subscription.catch_up = None;
                let CatchUpJob {
                    subscriber,
                    reader,
                    notices,
                    ..
                } = job;
                for request in reader.catch_up(thread) {
                    ask_one(&*subscriber, thread, request);
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

    /// Removes all subscriptions when the task ends. Catch-up jobs read to the end of what is
    /// stored and deliver the last notices.
    pub(in crate::task) fn detach(&mut self) {
        self.subscriptions.clear();
        self.catch_ups.detach();
    }

    fn remove_number(&mut self, number: u64) {
        self.subscriptions.retain(|it| it.number != number);
    }
}

impl CatchUps {
    pub(super) fn new(id: ThreadId, stores: Stores) -> Self {
        Self {
            id,
            stores,
            next_number: 0,
            jobs: JoinSet::new(),
            nearly_done: Vec::new(),
            stored: Arc::default(),
        }
    }

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

    fn set_stored(&self, stored: Seq) {
        self.stored.store(stored.0, Ordering::Release);
    }

    /// From here on the subscriber is served from the journal.
    fn start(&mut self, subscription: &mut Subscription, reader: Box<CatchUpReader>) {
        let notices = Notices::default();
        let job = CatchUpJob {
            id: self.id,
            subscription: subscription.number,
            subscriber: subscription.subscriber.clone(),
            closed: subscription.closed.clone(),
            reader,
            pending: VecDeque::new(),
            notices: notices.clone(),
            journal: self.stores.journal.clone(),
            blobs: self.stores.blobs.clone(),
            stored: self.stored.clone(),
            is_deleted: false,
            is_complete: false,
        };
        let job = self.jobs.spawn(job.run());
        subscription.catch_up = Some(CatchUp { notices, job });
    }

    fn detach(&mut self) {
        let mut jobs = std::mem::take(&mut self.jobs);
        let mut nearly_done = std::mem::take(&mut self.nearly_done);
        if nearly_done.is_empty() && jobs.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            loop {
                for job in nearly_done.drain(..) {
                    jobs.spawn(job.run());
                }
                match jobs.join_next().await {
                    // It returned just before the task ended.
                    Some(Ok((job, ReadProgress::Last))) if !job.is_complete => {
                        nearly_done.push(job);
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        });
    }
}
