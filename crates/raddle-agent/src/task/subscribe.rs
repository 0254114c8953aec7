//! Adding subscribers to the thread.

use std::pin::pin;
use std::sync::Arc;

use raddle_core::ports::BoxFuture;
use raddle_core::{
    CatchUpReader, ChangeSettings, Command, CursorStatus, Envelope, RequestNumber, Seq,
    SubscriptionStart, Token, tell_goal, tell_open, tell_usage,
};
use tokio::time::timeout;

use super::{JOURNAL_TIMEOUT, Task};
use crate::open::open_at;
use crate::{AgentError, Delivery, SubscribeResult, Subscriber};

/// A subscriber that is about to be added.
pub(crate) struct NewSubscriber {
    pub(crate) subscriber: Arc<dyn Subscriber>,
    pub(crate) reply: SubscribeReply,
    pub(crate) usage: UsageReport,
    /// Whether it returns to a thread, and then receives the state of the goal.
    pub(crate) is_returning: bool,
    /// The last record that it received, if it continues from there.
    pub(crate) cursor: Option<Seq>,
}

/// Replies to a new subscriber. The task waits for the returned future before anything else happens
/// in the thread, so that the reply may be read from the journal and be exact. The future returns
/// whether a reply was sent.
pub(crate) type SubscribeReply =
    Box<dyn FnOnce(Result<SubscribeResult, AgentError>) -> Option<BoxFuture<'static, bool>> + Send>;

/// Whether a new subscriber receives the token usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageReport {
    Sent,
    Omitted,
}

/// A subscriber whose reply is being prepared.
pub(super) struct PendingSubscriber {
    subscriber: AcceptedSubscriber,
    /// Resolves to `None` if no reply, or an error, was sent.
    answer: BoxFuture<'static, Option<StartPoint>>,
}

/// A subscriber that has received its reply.
struct AcceptedSubscriber {
    subscriber: Arc<dyn Subscriber>,
    usage: UsageReport,
    is_returning: bool,
}

/// First events of a subscriber.
enum StartPoint {
    /// A snapshot of the current state.
    Whole,
    /// The records after its cursor.
    After(Box<CatchUpReader>),
}

impl Task {
    /// Replies to a new subscriber, then adds it.
    pub(super) fn reply_and_add(&mut self, subscriber: NewSubscriber, start: SubscriptionStart) {
        let NewSubscriber {
            subscriber,
            reply,
            usage,
            is_returning,
            cursor,
        } = subscriber;
        let accepted = AcceptedSubscriber {
            subscriber,
            usage,
            is_returning,
        };
        let subscribed = SubscribeResult {
            thread: Box::new(self.writer.thread().clone()),
            cursor: start.cursor,
            after: start.after,
            head: start.head,
        };
        let continues = cursor.is_some() && start.cursor == CursorStatus::Good;
        let answer: BoxFuture<'static, _> = if continues {
            let (journal, id) = (self.journal.clone(), self.id);
            Box::pin(async move {
                // Read the state before the next append, which may delete deltas that the
                // subscriber has received.
                let known_thread = match open_at(&*journal, id, start.after).await {
                    Ok(known_thread) => known_thread,
                    Err(error) => {
                        drop(reply(Err(error.into())));
                        return None;
                    }
                };
                let reader = CatchUpReader::returning(known_thread, &subscribed.thread);
                let start_point = StartPoint::After(Box::new(reader));
                is_answered(reply(Ok(subscribed)))
                    .await
                    .then_some(start_point)
            })
        } else {
            let answer = match reply(Ok(subscribed)) {
                None => return self.add_subscriber(accepted, StartPoint::Whole),
                answer => is_answered(answer),
            };
            Box::pin(async { answer.await.then_some(StartPoint::Whole) })
        };
        self.pending_subscribers.push_back(PendingSubscriber {
            subscriber: accepted,
            answer,
        });
    }

    /// Waits for the replies to pending subscribers. Nothing is appended before they are sent, so
    /// live events continue exactly where their reply ends.
    pub(super) async fn add_pending_subscribers(&mut self) {
        while let Some(pending) = self.pending_subscribers.pop_front() {
            let PendingSubscriber {
                subscriber: accepted,
                answer,
            } = pending;
            let mut answer = pin!(timeout(JOURNAL_TIMEOUT, answer));
            let start_point = loop {
                let is_wanted = self.is_progress_wanted();
                tokio::select! {
                    biased;
                    start_point = &mut answer => break start_point.unwrap_or_default(),
                    message = self.inbox.recv(), if !self.closed => {
                        self.receive(message);
                        self.run_inspections();
                    }
                    () = self.progress.due(), if is_wanted => self.send_progress(),
                }
            };
            if let Some(start_point) = start_point {
                self.add_subscriber(accepted, start_point);
            }
        }
        let deferred = std::mem::take(&mut self.deferred);
        self.act(deferred);
    }

    /// Adds a subscriber. It first receives the current state and the open items, or the records
    /// after its cursor; then the open requests; then live events.
    fn add_subscriber(&mut self, accepted: AcceptedSubscriber, start_point: StartPoint) {
        let AcceptedSubscriber {
            subscriber,
            usage,
            is_returning,
        } = accepted;
        self.remove_subscriber(&subscriber);
        self.is_known = true;
        if let StartPoint::After(reader) = start_point {
            return self.resubscribe(subscriber, reader);
        }
        self.subscriptions
            .push(self.catch_ups.subscription(subscriber.clone()));
        let thread = self.writer.thread();
        let used = tell_usage(thread).filter(|_| usage == UsageReport::Sent);
        let goal = tell_goal(thread).filter(|_| is_returning);
        let open = tell_open(thread);
        let requests: Vec<RequestNumber> = thread.requests().map(|(number, _)| number).collect();
        let notifications: Vec<_> = used.into_iter().chain(goal).chain(open).collect();
        // The last notification carries the head: together they cover all records up to it.
        let (count, stored) = (notifications.len(), self.writer.stored());
        for (at, notification) in notifications.into_iter().enumerate() {
            subscriber.deliver(&Delivery::Record {
                notification: Arc::new(notification),
                seq: (at + 1 == count).then_some(stored),
            });
        }
        for request in requests {
            self.ask(request, Some(&*subscriber));
        }
    }

    /// Removes a subscriber. Returns whether it was subscribed.
    pub(super) fn remove_subscriber(&mut self, subscriber: &Arc<dyn Subscriber>) -> bool {
        let at = self
            .subscriptions
            .iter()
            .position(|subscription| subscription.is(subscriber));
        at.map(|at| self.subscriptions.remove(at).clear()).is_some()
    }

    /// Applies a new subscriber's changes of settings only if there is no other subscriber and
    /// nothing runs.
    pub(super) fn change_for(&mut self, change: Option<Box<ChangeSettings>>) {
        // A pending command may start a turn.
        let is_free = self.subscriptions.is_empty()
            && self.callers.is_empty()
            && self.writer.thread().turn().is_none();
        let Some(change) = change.filter(|_| is_free) else {
            return;
        };
        self.tokens += 1;
        let change = Command::ChangeSettings(change);
        // If the inbox is full, the subscriber is rejected as well.
        let _ = self
            .writer
            .offer(Envelope::command(Token(self.tokens), change));
    }
}

/// Whether a reply was sent.
async fn is_answered(answer: Option<BoxFuture<'static, bool>>) -> bool {
    match answer {
        Some(answer) => answer.await,
        None => true,
    }
}
