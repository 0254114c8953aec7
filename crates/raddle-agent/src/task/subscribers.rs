//! The subscribers of a thread.

mod catch_up;

use std::collections::VecDeque;
use std::sync::Arc;

use raddle_core::{RequestNumber, Seq, Thread, ThreadId, WriterAction, ask};
use raddle_protocol::Notification;

use self::catch_up::{CatchUps, Subscription};
use super::Stores;
use super::subscribe::{NewSubscriber, PendingSubscriber};
use crate::{Delivery, Subscriber};

/// The subscribers of a thread: present, pending, and the creator of a new thread.
///
/// - A client has at most one subscription. Subscribing again replaces it.
/// - A subscription has one source of records: the task, or its catch-up job. So the subscriber
///   receives each record once and in order.
/// - A removed subscription receives nothing more. A delivery that fails removes it.
/// - A pending subscriber receives nothing before its reply.
pub(super) struct Subscribers {
    subscriptions: Vec<Subscription>,
    catch_ups: CatchUps,
    /// Subscribers that cannot answer a request.
    unable: Vec<(RequestNumber, Arc<dyn Subscriber>)>,
    /// The creator of the thread, until its first records are stored.
    starter: Option<NewSubscriber>,
    /// Subscribers that receive their reply first, and no events yet.
    pending: VecDeque<PendingSubscriber>,
    /// Actions that wait for those replies.
    deferred: Vec<WriterAction>,
    /// Whether any client was notified that the thread is in memory.
    is_known: bool,
}

impl Subscribers {
    pub(super) fn new(id: ThreadId, stores: Stores, starter: Option<NewSubscriber>) -> Self {
        Self {
            subscriptions: Vec::new(),
            catch_ups: CatchUps::new(id, stores),
            unable: Vec::new(),
            starter,
            pending: VecDeque::new(),
            deferred: Vec::new(),
            is_known: false,
        }
    }

    /// Adds a subscriber. It first receives the state of the thread and the open requests, then
    /// live events.
    pub(super) fn add(
        &mut self,
        subscriber: Arc<dyn Subscriber>,
        state: Vec<Notification>,
        thread: &Thread,
        stored: Seq,
    ) {
        self.remove(&subscriber);
        self.is_known = true;
        // The last notification carries the head: together they cover all records up to it.
        let count = state.len();
        for (at, notification) in state.into_iter().enumerate() {
            subscriber.deliver(&Delivery::Record {
                notification: Arc::new(notification),
                seq: (at + 1 == count).then_some(stored),
            });
        }
        for (request, _) in thread.requests() {
            ask_one(&*subscriber, thread, request);
        }
        let subscription = self.catch_ups.subscription(subscriber);
        self.subscriptions.push(subscription);
    }

    /// Removes a subscriber. Returns whether it was subscribed.
    pub(super) fn remove(&mut self, subscriber: &Arc<dyn Subscriber>) -> bool {
        let at = self.subscriptions.iter().position(|it| it.is(subscriber));
        at.map(|at| self.subscriptions.remove(at).clear()).is_some()
    }

    /// Removes the subscribers that are no longer connected.
    pub(super) fn remove_disconnected(&mut self) {
        self.subscriptions.retain(|it| it.subscriber.is_connected());
    }

    /// Whether there is no subscriber. Pending subscribers do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    pub(super) fn contains(&self, subscriber: &Arc<dyn Subscriber>) -> bool {
        self.subscriptions.iter().any(|it| it.is(subscriber))
    }

    /// Delivers a record. Subscribers that catch up read it from the journal.
    pub(super) fn deliver(&mut self, record: &Delivery) {
        self.subscriptions.retain(|it| it.deliver(record));
    }

    /// Delivers an event that is not a record.
    pub(super) fn notice(&mut self, notice: &Delivery) {
        self.subscriptions.retain(|it| it.notice(notice));
    }

    /// Delivers an event that is not a record to the subscribers that catch up.
    pub(super) fn notice_catching_up(&mut self, notice: &Delivery) {
        self.subscriptions
            .retain(|it| !it.is_catching_up() || it.notice(notice));
    }

    /// Delivers the progress of a turn to the subscribers that want it.
    pub(super) fn notice_progress(&mut self, progress: &Delivery) {
        self.subscriptions
            .retain(|it| !it.receives_progress() || it.notice(progress));
    }

    /// Delivers an event that is not a record to the subscribers with capacity. The others have
    /// older events to read.
    pub(super) fn notice_with_capacity(&mut self, notice: &Delivery) {
        self.subscriptions
            .retain(|it| !it.has_capacity() || it.notice(notice));
    }

    /// Delivers an event of a plugin to the subscribers that want it.
    pub(super) fn notice_plugin_event(&mut self, event: &Delivery) {
        self.subscriptions
            .retain(|it| !it.receives_plugin_events() || it.notice(event));
    }

    /// Whether any subscriber receives the progress of a turn.
    pub(super) fn want_progress(&self) -> bool {
        let mut subscriptions = self.subscriptions.iter();
        subscriptions.any(Subscription::receives_progress)
    }

    /// Sends an open request to the subscribers that may answer requests.
    pub(super) fn ask(&mut self, thread: &Thread, request: RequestNumber) {
        if let Some(delivery) = request_delivery(thread, request) {
            self.subscriptions
                .retain(|it| !it.subscriber.can_answer() || it.deliver(&delivery));
        }
    }

    /// Records that a subscriber cannot answer a request, and forgets the requests that are not
    /// open. Returns whether no other subscriber can answer either.
    pub(super) fn note_unable(
        &mut self,
        request: RequestNumber,
        subscriber: Arc<dyn Subscriber>,
        is_open: impl Fn(RequestNumber) -> bool,
    ) -> bool {
        self.unable.retain(|(number, _)| is_open(*number));
        let is_same = |(number, it): &(RequestNumber, Arc<dyn Subscriber>)| {
            *number == request && Arc::ptr_eq(it, &subscriber)
        };
        if !self.unable.iter().any(is_same) {
            self.unable.push((request, subscriber));
        }
        !self.has_answerer(request)
    }

    /// Whether a subscriber, present or pending, may answer a request.
    pub(super) fn could_answer(&self, request: RequestNumber) -> bool {
        self.has_pending() || self.has_answerer(request)
    }

    /// Whether a connected subscriber may answer a request, and has not declined to.
    fn has_answerer(&self, request: RequestNumber) -> bool {
        self.subscriptions.iter().any(|subscription| {
            let subscriber = &subscription.subscriber;
            let mut unable = self.unable.iter();
            let is_unable = unable.any(|(number, it)| *number == request && subscription.is(it));
            subscriber.is_connected() && subscriber.can_answer() && !is_unable
        })
    }

    pub(super) fn has_starter(&self) -> bool {
        self.starter.is_some()
    }

    pub(super) fn take_starter(&mut self) -> Option<NewSubscriber> {
        self.starter.take()
    }

    /// Adds a subscriber that waits for its reply.
    pub(super) fn add_pending(&mut self, pending: PendingSubscriber) {
        self.pending.push_back(pending);
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn next_pending(&mut self) -> Option<PendingSubscriber> {
        self.pending.pop_front()
    }

    /// Keeps actions until the pending subscribers have their replies.
    pub(super) fn defer(&mut self, actions: Vec<WriterAction>) {
        self.deferred = actions;
    }

    pub(super) fn take_deferred(&mut self) -> Vec<WriterAction> {
        std::mem::take(&mut self.deferred)
    }

    /// Whether any client was notified that the thread is in memory.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Records that all clients are notified of the thread.
    pub(super) fn set_known(&mut self) {
        self.is_known = true;
    }
}

/// Sends an open request to one subscriber, if it may answer requests.
fn ask_one(subscriber: &dyn Subscriber, thread: &Thread, request: RequestNumber) {
    if subscriber.can_answer()
        && let Some(delivery) = request_delivery(thread, request)
    {
        subscriber.deliver(&delivery);
    }
}

/// Converts an open request to a delivery.
fn request_delivery(thread: &Thread, request: RequestNumber) -> Option<Delivery> {
    let (id, method, params) = ask(thread, request)?;
    Some(Delivery::Request {
        id,
        method,
        params: Arc::new(params),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use raddle_protocol::ThreadClosedNotification;
    use raddle_store::MemoryJournal;

    use super::*;
    use crate::thread_blobs::ThreadBlobs;

    /// Log of all deliveries, in order.
    type DeliveryLog = Arc<Mutex<Vec<String>>>;

    /// A subscriber that writes its deliveries to a log.
    struct LoggedSubscriber {
        name: String,
        log: DeliveryLog,
        state: Mutex<ConnectionState>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum ConnectionState {
        Ready,
        Slow,
        Gone,
    }

    impl LoggedSubscriber {
        fn state(&self) -> ConnectionState {
            *self.state.lock().expect("state")
        }
    }

    impl Subscriber for LoggedSubscriber {
        fn deliver(&self, delivery: &Delivery) -> bool {
            if self.state() == ConnectionState::Gone {
                return false;
            }
            let kind = match delivery {
                Delivery::Record { .. } => "record",
                Delivery::Notice(_) => "notice",
                Delivery::Request { .. } => "request",
            };
            let name = &self.name;
            self.log.lock().expect("log").push(format!("{name}:{kind}"));
            true
        }

        fn is_connected(&self) -> bool {
            self.state() != ConnectionState::Gone
        }

        fn wants_plugin_events(&self) -> bool {
            self.name == "b"
        }

        fn has_capacity(&self) -> bool {
            self.state() != ConnectionState::Slow
        }
    }

    fn subscribers() -> Subscribers {
        let thread = ThreadId::mint();
        let store = Arc::new(MemoryJournal::new());
        let stores = Stores {
            journal: store.clone(),
            blobs: ThreadBlobs { store, thread },
        };
        Subscribers::new(thread, stores, None)
    }

    fn clients(log: &DeliveryLog) -> BTreeMap<&'static str, Arc<LoggedSubscriber>> {
        let client = |name: &'static str| {
            let subscriber = LoggedSubscriber {
                name: name.to_owned(),
                log: log.clone(),
                state: Mutex::new(ConnectionState::Ready),
            };
            (name, Arc::new(subscriber))
        };
        ["a", "b"].map(client).into()
    }

    /// Runs steps. Returns the deliveries, and the subscribers at the end.
    fn run(steps: &str) -> (String, String) {
        let log = DeliveryLog::default();
        let clients = clients(&log);
        let mut subscribers = subscribers();
        let thread_id = ThreadId::mint();
        let closed = ThreadClosedNotification { thread_id };
        let notification: Arc<Notification> = Arc::new(closed.into());
        let record = Delivery::Record {
            notification: notification.clone(),
            seq: Some(Seq(1)),
        };
        for step in steps.split(' ') {
            let (verb, name) = step.split_once(':').unwrap_or((step, ""));
            let client = clients.get(name);
            let subscriber = || -> Arc<dyn Subscriber> { client.expect("a client").clone() };
            let set = |state| *client.expect("a client").state.lock().expect("state") = state;
            match verb {
                "add" => subscribers.add(subscriber(), Vec::new(), &Thread::new(), Seq::ZERO),
                "remove" => drop(subscribers.remove(&subscriber())),
                "slow" => set(ConnectionState::Slow),
                "gone" => set(ConnectionState::Gone),
                "switch" => drop(subscribers.start_catch_ups(&Thread::new())),
                "record" => subscribers.deliver(&record),
                "notice" => subscribers.notice(&Delivery::Notice(notification.clone())),
                "event" => {
                    subscribers.notice_plugin_event(&Delivery::Notice(notification.clone()));
                }
                "disconnected" => subscribers.remove_disconnected(),
                other => panic!("{other}"),
            }
        }
        let names = clients.iter().filter(|(_, client)| {
            let subscriber: Arc<dyn Subscriber> = (*client).clone();
            subscribers.contains(&subscriber)
        });
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        let deliveries = log.lock().expect("log").join(" ");
        (deliveries, names.join(" "))
    }

    /// The catch-up jobs do not run here: nothing yields to them.
    #[tokio::test]
    async fn deliveries_reach_exactly_the_subscribers() {
        for (steps, deliveries, names) in [
            ("add:a add:b record", "a:record b:record", "a b"),
            ("add:a add:a record", "a:record", "a"),
            ("add:a add:b remove:a record", "b:record", "b"),
            ("add:a add:b remove:a notice", "b:notice", "b"),
            ("add:a gone:a record", "", ""),
            ("add:a gone:a notice", "", ""),
            ("add:a add:b gone:b disconnected", "", "a"),
            // Only b receives the events of plugins, and none while it is slow.
            ("add:a add:b event", "b:notice", "a b"),
            ("add:a add:b slow:b event", "", "a b"),
            ("add:a add:b gone:b event", "", "a"),
            // Nothing is delivered live to a subscriber that catches up.
            ("add:a add:b slow:a switch record", "b:record", "a b"),
            ("add:a slow:a switch notice", "", "a"),
            // A slow subscriber receives live records until it is switched.
            ("add:a slow:a record switch record", "a:record", "a"),
            ("add:a slow:a switch add:a record", "a:record", "a"),
        ] {
            let expected = (deliveries.to_owned(), names.to_owned());
            assert_eq!(run(steps), expected, "{steps}");
        }
    }

    #[test]
    fn a_request_has_answerers_until_every_subscriber_is_unable() {
        // Each case: the open requests, the reports of subscribers, and the result of the last.
        for (open, reports, is_last) in [
            (vec![1], vec![("a", 1)], false),
            (vec![1], vec![("a", 1), ("b", 1)], true),
            (vec![1], vec![("a", 1), ("a", 1)], false),
            (vec![1, 2], vec![("a", 1), ("b", 2)], false),
            // A request that is not open is forgotten.
            (vec![2], vec![("a", 1), ("b", 2), ("a", 2)], true),
            (vec![2], vec![("a", 1), ("b", 1)], false),
        ] {
            let log = DeliveryLog::default();
            let clients = clients(&log);
            let mut subscribers = subscribers();
            for client in clients.values() {
                subscribers.add(client.clone(), Vec::new(), &Thread::new(), Seq::ZERO);
            }
            let mut last = false;
            for (name, request) in &reports {
                let is_open = |it: RequestNumber| open.contains(&it.0);
                let client = clients[name].clone();
                last = subscribers.note_unable(RequestNumber(*request), client, is_open);
            }
            assert_eq!(last, is_last, "{open:?} {reports:?}");
        }
    }
}
