//! Those who hear of the thread, and what they are told.

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
    pub(super) fn subscribe(&mut self, settled: SubscriptionStart) {
        if let Some(Caller::Subscribe(subscriber)) = self.callers.remove(&settled.token) {
            self.introduce(subscriber, settled);
        }
    }

    /// Tells a record: to everyone what concerns everyone, to subscribers the rest.
    pub(super) fn tell(&mut self, told: Announcement) {
        self.shared.counters.stored(&told.record);
        self.is_known |= self.owner.thread().turn().is_some();
        let count = told.notifications.len();
        if let RecordBody::Event(event) = &told.record.body
            && let Event::ModelEnded(ended) = &**event
            && let Some(usage) = &ended.usage
        {
            let provider = told.notifications.iter().find_map(|it| match it {
                Notification::ThreadTokenUsageUpdated(it) => it.model_provider.as_deref(),
                _ => None,
            });
            self.shared.counters.provider_tokens.add(provider, usage);
        }
        for (at, notification) in told.notifications.into_iter().enumerate() {
            let scope = notification.scope();
            let notification = Arc::new(notification);
            let seq = (at + 1 == count).then_some(told.record.seq);
            let numbered = Delivery::Record {
                notification: notification.clone(),
                seq,
            };
            self.subscriptions.retain(|seat| seat.deliver(&numbered));
            if scope == Scope::Everyone {
                self.tell_others(&Delivery::Notice(notification));
            }
        }
    }

    /// Asks all subscribers, or one who has just come.
    pub(super) fn ask(&mut self, request: RequestNumber, one: Option<&dyn Subscriber>) {
        let Some((id, method, params)) = ask(self.owner.thread(), request) else {
            return;
        };
        let asked = Delivery::Request {
            id,
            method,
            params: Arc::new(params),
        };
        match one {
            Some(listener) if listener.can_answer() => drop(listener.deliver(&asked)),
            Some(_) => {}
            None => {
                let hears =
                    |seat: &Subscription| !seat.subscriber.can_answer() || seat.deliver(&asked);
                self.subscriptions.retain(hears);
            }
        }
    }

    /// Someone cannot answer a request. As long as another was asked who has not said the same, it stays open;
    /// whether there is none.
    pub(super) fn note_cannot_answer(
        &mut self,
        request: RequestNumber,
        listener: Arc<dyn Subscriber>,
    ) -> bool {
        let thread = self.owner.thread();
        let is_open = |it: RequestNumber| thread.requests().any(|(number, _)| number == it);
        self.unable.retain(|(number, _)| is_open(*number));
        let is_same = |(number, it): &(RequestNumber, Arc<dyn Subscriber>)| {
            *number == request && Arc::ptr_eq(it, &listener)
        };
        if !self.unable.iter().any(is_same) {
            self.unable.push((request, listener));
        }
        self.able(request).next().is_none()
    }

    /// Those who hear of a request, may answer it, and have not said that they cannot.
    pub(super) fn able(&self, request: RequestNumber) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.iter().filter(move |seat| {
            let listener = &seat.subscriber;
            let mut unable = self.unable.iter();
            let is_unable = unable.any(|(number, it)| *number == request && seat.is(it));
            listener.is_connected() && listener.can_answer() && !is_unable
        })
    }

    /// Whoever hears of the thread must not wait for what will not come. This is no record, so it has no
    /// number: the turn, if one runs, is ended or taken up by whoever opens the thread next.
    pub(super) fn say_why(&mut self, ended: &WriterEnd) {
        let id = self.id;
        if *ended == WriterEnd::Deleted {
            // The others were told. To who reads slowly the records may be gone.
            let deleted = ThreadDeletedNotification { thread_id: id };
            let deleted = Delivery::Notice(Arc::new(deleted.into()));
            for seat in self
                .subscriptions
                .iter()
                .filter(|seat| seat.is_catching_up())
            {
                seat.notice(&deleted);
            }
            return;
        }
        let thread = self.owner.thread();
        // The end of a turn that was not stored is in memory only: to subscribers the turn is open.
        let unstored = self.owner.fails().and_then(|_| thread.last_turn());
        let turn = thread.turn().map(|turn| turn.id.clone());
        let turn = turn.or_else(|| unstored.map(|turn| turn.id.clone()));
        if let (WriterEnd::NotStored(why), Some(turn)) = (ended, turn) {
            self.notice(not_stored(id, turn, why, self.failed.as_ref()).into());
        }
        if self.unloading.is_some() {
            return self.say_goodbye();
        }
        self.notice(ThreadClosedNotification { thread_id: id }.into());
    }

    /// Tells subscribers what is no record.
    pub(super) fn notice(&mut self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.subscriptions.retain(|seat| seat.notice(&notice));
    }

    /// Tells everyone what is no record.
    pub(super) fn notice_all(&mut self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.subscriptions.retain(|seat| seat.notice(&notice));
        self.tell_others(&notice);
    }

    /// Tells those who do not hear it as subscribers.
    fn tell_others(&self, notice: &Delivery) {
        let is_subscriber =
            |it: &Arc<dyn Subscriber>| self.subscriptions.iter().any(|seat| seat.is(it));
        self.shared.tell_others(notice, is_subscriber);
    }
}

/// A turn goes no further here, because nothing more can be stored.
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
