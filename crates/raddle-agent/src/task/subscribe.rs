//! Adding subscribers to the thread, and the waits of the task for them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::BoxFuture;
use raddle_core::{
    CatchUpReader, ChangeSettings, Command, CursorStatus, Envelope, Seq, SubscriptionStart, Token,
    notification_of_goal, notification_of_usage, notifications_of_open_items,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Caller, Task};
use crate::open::open_at;
use crate::{AgentError, SubscribeResult, Subscriber};

/// Maximum time that the thread waits for subscribers to read their last pages.
const LAST_PAGES: Duration = Duration::from_secs(2);

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
    pub(super) fn subscribe(&mut self, start: SubscriptionStart) {
        if let Some(Caller::Subscribe(subscriber)) = self.callers.remove(&start.token) {
            self.reply_and_add(subscriber, start);
        }
    }

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
        self.subscribers.add_pending(PendingSubscriber {
            subscriber: accepted,
            answer,
        });
    }

    /// Waits for the replies to pending subscribers. Nothing is appended before they are sent, so
    /// live events continue exactly where their reply ends.
    pub(super) async fn add_pending_subscribers(&mut self) {
        while let Some(pending) = self.subscribers.next_pending() {
            let PendingSubscriber {
                subscriber: accepted,
                answer,
            } = pending;
            let outage_max = self.journal.timeouts().outage;
            let mut answer = pin!(timeout(outage_max, answer));
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
        let deferred = self.subscribers.take_deferred();
        self.act(deferred);
    }

    /// Adds a subscriber. It first receives the current state and the open items, or the records
    /// after its cursor.
    fn add_subscriber(&mut self, accepted: AcceptedSubscriber, start_point: StartPoint) {
        let AcceptedSubscriber {
            subscriber,
            usage,
            is_returning,
        } = accepted;
        let stored = self.writer.stored();
        if let StartPoint::After(reader) = start_point {
            return self.subscribers.add_returning(subscriber, reader, stored);
        }
        let thread = self.writer.thread();
        let used = notification_of_usage(thread).filter(|_| usage == UsageReport::Sent);
        let goal = notification_of_goal(thread).filter(|_| is_returning);
        let open = notifications_of_open_items(thread);
        let state = used.into_iter().chain(goal).chain(open).collect();
        self.subscribers.add(subscriber, state, thread, stored);
    }

    /// Completes nearly finished catch-ups while no append runs, and switches them to live events.
    pub(super) async fn finish_catch_ups(&mut self) {
        self.subscribers.join_catch_ups();
        let until = Instant::now() + LAST_PAGES;
        while self.writer.stored_thread().is_some()
            && let Some(mut job) = self.subscribers.nearly_done()
        {
            let rest = self.during(timeout_at(until, job.rest())).await;
            let stored = self.writer.stored_thread();
            self.subscribers.finish_catch_up(job, rest.ok(), stored);
        }
    }

    /// Applies a new subscriber's changes of settings only if there is no other subscriber and
    /// nothing runs.
    pub(super) fn change_for(&mut self, change: Option<Box<ChangeSettings>>) {
        // A pending command may start a turn.
        let is_free = self.subscribers.is_empty()
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
