//! The subscribers of the thread, and their notifications.

use std::sync::Arc;

use raddle_core::ports::AppendError;
use raddle_core::{
    Announcement, Event, RecordBody, RequestNumber, SubscriptionStart, ThreadId, TurnId, WriterEnd,
    ask,
};
use raddle_protocol::table::Scope;
use raddle_protocol::{
    CodexErrorInfo, ErrorClass, ErrorNotification, Notification, ThreadClosedNotification,
    ThreadDeletedNotification, TurnError,
};

use super::catch_up::Subscription;
use super::{Caller, Task};
use crate::{Delivery, Subscriber};

impl Task {
    pub(super) fn subscribe(&mut self, start: SubscriptionStart) {
        if let Some(Caller::Subscribe(subscriber)) = self.callers.remove(&start.token) {
            self.reply_and_add(subscriber, start);
        }
    }

    /// Announces a record: global notifications to all clients, the others to subscribers.
    pub(super) fn tell(&mut self, announcement: Announcement) {
        self.shared.counters.stored(&announcement.record);
        self.is_known |= self.writer.thread().turn().is_some();
        let count = announcement.notifications.len();
        if let RecordBody::Event(event) = &announcement.record.body
            && let Event::ModelEnded(ended) = &**event
            && let Some(usage) = &ended.usage
        {
            let provider = announcement.notifications.iter().find_map(|it| match it {
                Notification::ThreadTokenUsageUpdated(it) => it.model_provider.as_deref(),
                _ => None,
            });
            self.shared.counters.provider_tokens.add(provider, usage);
        }
        for (at, notification) in announcement.notifications.into_iter().enumerate() {
            let scope = notification.scope();
            let notification = Arc::new(notification);
            let seq = (at + 1 == count).then_some(announcement.record.seq);
            let numbered = Delivery::Record {
                notification: notification.clone(),
                seq,
            };
            self.subscriptions
                .retain(|subscription| subscription.deliver(&numbered));
            if scope == Scope::Everyone {
                self.tell_others(&Delivery::Notice(notification));
            }
        }
    }

    /// Sends a request to all subscribers, or to one new subscriber.
    pub(super) fn ask(&mut self, request: RequestNumber, one: Option<&dyn Subscriber>) {
        let Some((id, method, params)) = ask(self.writer.thread(), request) else {
            return;
        };
        let delivery = Delivery::Request {
            id,
            method,
            params: Arc::new(params),
        };
        match one {
            Some(subscriber) if subscriber.can_answer() => drop(subscriber.deliver(&delivery)),
            Some(_) => {}
            None => {
                let is_kept = |subscription: &Subscription| {
                    !subscription.subscriber.can_answer() || subscription.deliver(&delivery)
                };
                self.subscriptions.retain(is_kept);
            }
        }
    }

    /// Records that a subscriber cannot answer a request. The request stays open as long as another
    /// subscriber may answer it. Returns whether there is none.
    pub(super) fn note_cannot_answer(
        &mut self,
        request: RequestNumber,
        subscriber: Arc<dyn Subscriber>,
    ) -> bool {
        let thread = self.writer.thread();
        let is_open = |it: RequestNumber| thread.requests().any(|(number, _)| number == it);
        self.unable.retain(|(number, _)| is_open(*number));
        let is_same = |(number, it): &(RequestNumber, Arc<dyn Subscriber>)| {
            *number == request && Arc::ptr_eq(it, &subscriber)
        };
        if !self.unable.iter().any(is_same) {
            self.unable.push((request, subscriber));
        }
        self.answerers(request).next().is_none()
    }

    /// Subscribers that received a request, may answer it, and have not declined to.
    pub(super) fn answerers(&self, request: RequestNumber) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.iter().filter(move |subscription| {
            let subscriber = &subscription.subscriber;
            let mut unable = self.unable.iter();
            let is_unable = unable.any(|(number, it)| *number == request && subscription.is(it));
            subscriber.is_connected() && subscriber.can_answer() && !is_unable
        })
    }

    /// Notifies subscribers of the end, so that they do not wait for further events. The
    /// notification is not a record, so it has no sequence number. The next process that loads the
    /// thread ends or resumes a running turn.
    pub(super) fn notify_end(&mut self, ended: &WriterEnd) {
        let id = self.id;
        if *ended == WriterEnd::Deleted {
            // The others have received the record. A slow subscriber may find the records deleted.
            let deleted = ThreadDeletedNotification { thread_id: id };
            let deleted = Delivery::Notice(Arc::new(deleted.into()));
            for subscription in self
                .subscriptions
                .iter()
                .filter(|subscription| subscription.is_catching_up())
            {
                subscription.notice(&deleted);
            }
            return;
        }
        let thread = self.writer.thread();
        // The end of an unstored turn exists in memory only: for subscribers the turn is open.
        let unstored = self.writer.fails().and_then(|_| thread.last_turn());
        let turn = thread.turn().map(|turn| turn.id.clone());
        let turn = turn.or_else(|| unstored.map(|turn| turn.id.clone()));
        if let (WriterEnd::NotStored(why), Some(turn)) = (ended, turn) {
            self.notice(not_stored(id, turn, why, self.failed.as_ref()).into());
        }
        if self.unloading.is_some() {
            return self.notify_unloaded();
        }
        self.notice(ThreadClosedNotification { thread_id: id }.into());
    }

    /// Sends an event that is not a record to the subscribers.
    pub(super) fn notice(&mut self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.subscriptions
            .retain(|subscription| subscription.notice(&notice));
    }

    /// Sends an event that is not a record to all clients.
    pub(super) fn notice_all(&mut self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.subscriptions
            .retain(|subscription| subscription.notice(&notice));
        self.tell_others(&notice);
    }

    /// Sends an event to the clients that do not receive it as subscribers.
    fn tell_others(&self, notice: &Delivery) {
        let is_subscriber = |it: &Arc<dyn Subscriber>| {
            self.subscriptions
                .iter()
                .any(|subscription| subscription.is(it))
        };
        self.shared.tell_others(notice, is_subscriber);
    }
}

/// The error of a turn that cannot continue because the journal cannot be written.
fn not_stored(
    thread: ThreadId,
    turn: TurnId,
    why: &str,
    error: Option<&AppendError>,
) -> ErrorNotification {
    let kind = match error {
        Some(AppendError::Full(_)) => "storageFull",
        Some(AppendError::ReadOnly(_)) => "storageReadOnly",
        _ => "storageUnavailable",
    };
    ErrorNotification {
        thread_id: thread,
        turn_id: turn,
        error: TurnError {
            message: format!("the thread's journal cannot be written: {why}"),
            additional_details: None,
            codex_error_info: Some(CodexErrorInfo::Unrecognized(kind.into())),
            misalignment: None,
            class: Some(ErrorClass::Internal),
            retry_at_ms: None,
            budget: None,
        },
        will_retry: false,
    }
}
