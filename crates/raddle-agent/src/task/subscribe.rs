//! Those who come to hear of the thread.

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
use crate::threads::{AgentError, SubscribeResult};
use crate::{Delivery, Subscriber};

/// Someone who is about to hear of the thread.
pub(crate) struct NewSubscriber {
    pub(crate) subscriber: Arc<dyn Subscriber>,
    pub(crate) reply: SubscribeReply,
    pub(crate) usage: UsageReport,
    /// Whether it comes back to a thread, and is told how its goal stands.
    pub(crate) comes_back: bool,
    /// The last record it was told, if it goes on from there.
    pub(crate) seen: Option<Seq>,
}

/// Answers a new subscriber. What it returns is waited for before anything else happens in the thread, so
/// that the answer may be read from the journal and be exact; it says whether there was an answer.
pub(crate) type SubscribeReply =
    Box<dyn FnOnce(Result<SubscribeResult, AgentError>) -> Option<BoxFuture<'static, bool>> + Send>;

/// Whether a new subscriber is told what the model has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageReport {
    Sent,
    Omitted,
}

/// A subscriber who is being answered.
pub(super) struct PendingSubscriber {
    subscriber: AcceptedSubscriber,
    /// Nothing where there was no answer, or where it was no.
    answer: BoxFuture<'static, Option<StartPoint>>,
}

/// A subscriber who was answered.
struct AcceptedSubscriber {
    subscriber: Arc<dyn Subscriber>,
    usage: UsageReport,
    comes_back: bool,
}

/// With what a subscriber begins.
enum StartPoint {
    /// With how things stand.
    Whole,
    /// With what it missed.
    After(Box<CatchUpReader>),
}

impl Task {
    /// Answers a new subscriber, and then it hears.
    pub(super) fn introduce(&mut self, subscriber: NewSubscriber, settled: SubscriptionStart) {
        let NewSubscriber {
            subscriber: listener,
            reply,
            usage,
            comes_back,
            seen,
        } = subscriber;
        let guest = AcceptedSubscriber {
            subscriber: listener,
            usage,
            comes_back,
        };
        let subscribed = SubscribeResult {
            thread: Box::new(self.owner.thread().clone()),
            cursor: settled.cursor,
            after: settled.after,
            head: settled.head,
        };
        let goes_on = seen.is_some() && settled.cursor == CursorStatus::Good;
        let answer: BoxFuture<'static, _> = if goes_on {
            let (journal, id) = (self.journal.clone(), self.id);
            Box::pin(async move {
                // Read before anything is appended: later the text that it knows may be gone.
                let known = match open_at(&*journal, id, settled.after).await {
                    Ok(known) => known,
                    Err(error) => {
                        drop(reply(Err(error.into())));
                        return None;
                    }
                };
                let reader = CatchUpReader::returning(known, &subscribed.thread);
                let welcome = StartPoint::After(Box::new(reader));
                is_answered(reply(Ok(subscribed))).await.then_some(welcome)
            })
        } else {
            let answer = match reply(Ok(subscribed)) {
                None => return self.welcome(guest, StartPoint::Whole),
                answer => is_answered(answer),
            };
            Box::pin(async { answer.await.then_some(StartPoint::Whole) })
        };
        self.pending_subscribers.push_back(PendingSubscriber {
            subscriber: guest,
            answer,
        });
    }

    /// Waits for the answers to those who come. Nothing is appended meanwhile, so what they read is where
    /// they begin to hear.
    pub(super) async fn let_in(&mut self) {
        while let Some(joining) = self.pending_subscribers.pop_front() {
            let PendingSubscriber {
                subscriber: guest,
                answer,
            } = joining;
            let mut answer = pin!(timeout(JOURNAL_TIMEOUT, answer));
            let welcome = loop {
                let is_wanted = self.is_progress_wanted();
                tokio::select! {
                    biased;
                    welcome = &mut answer => break welcome.unwrap_or_default(),
                    message = self.inbox.recv(), if !self.closed => {
                        self.receive(message);
                        self.run_inspections();
                    }
                    () = self.progress.due(), if is_wanted => self.say_progress(),
                }
            };
            if let Some(welcome) = welcome {
                self.welcome(guest, welcome);
            }
        }
        let held = std::mem::take(&mut self.deferred);
        self.act(held);
    }

    /// From here on it hears: first how things stand and what is open, or what it missed; then what is still
    /// asked, then what happens.
    fn welcome(&mut self, guest: AcceptedSubscriber, welcome: StartPoint) {
        let AcceptedSubscriber {
            subscriber: listener,
            usage,
            comes_back,
        } = guest;
        self.remove_subscriber(&listener);
        self.is_known = true;
        if let StartPoint::After(reader) = welcome {
            return self.let_return(listener, reader);
        }
        self.subscriptions
            .push(self.catch_ups.subscription(listener.clone()));
        let thread = self.owner.thread();
        let used = tell_usage(thread).filter(|_| usage == UsageReport::Sent);
        let goal = tell_goal(thread).filter(|_| comes_back);
        let open = tell_open(thread);
        let asked: Vec<RequestNumber> = thread.requests().map(|(number, _)| number).collect();
        let told: Vec<_> = used.into_iter().chain(goal).chain(open).collect();
        // Who has heard all of it has heard what all records up to here say.
        let (count, stored) = (told.len(), self.owner.stored());
        for (at, notification) in told.into_iter().enumerate() {
            listener.deliver(&Delivery::Record {
                notification: Arc::new(notification),
                seq: (at + 1 == count).then_some(stored),
            });
        }
        for request in asked {
            self.ask(request, Some(&*listener));
        }
    }

    /// Someone hears of the thread no more; whether it had.
    pub(super) fn remove_subscriber(&mut self, listener: &Arc<dyn Subscriber>) -> bool {
        let at = self.subscriptions.iter().position(|seat| seat.is(listener));
        at.map(|at| self.subscriptions.remove(at).clear()).is_some()
    }

    /// What a newcomer wants otherwise counts only where nobody else is and nothing runs.
    pub(super) fn change_for(&mut self, change: Option<Box<ChangeSettings>>) {
        // What was ordered before and is not carried out yet may be a turn.
        let is_free = self.subscriptions.is_empty()
            && self.callers.is_empty()
            && self.owner.thread().turn().is_none();
        let Some(change) = change.filter(|_| is_free) else {
            return;
        };
        self.tokens += 1;
        let change = Command::ChangeSettings(change);
        // Without room the newcomer is refused as well.
        let _ = self
            .owner
            .offer(Envelope::command(Token(self.tokens), change));
    }
}

/// Whether there was an answer.
async fn is_answered(answer: Option<BoxFuture<'static, bool>>) -> bool {
    match answer {
        Some(answer) => answer.await,
        None => true,
    }
}
