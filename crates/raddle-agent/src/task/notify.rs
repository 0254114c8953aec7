//! Notifications and requests of the thread to its subscribers and to all clients.

use std::sync::Arc;

use raddle_core::ports::AppendError;
use raddle_core::{Announcement, Event, RecordBody, RequestNumber, ThreadId, TurnId, WriterEnd};
use raddle_protocol::table::Scope;
use raddle_protocol::{
    CodexErrorInfo, ErrorClass, ErrorNotification, Notification, ThreadClosedNotification,
    ThreadDeletedNotification, TurnError,
};

use super::Task;
use crate::{Delivery, Subscriber};

impl Task {
    /// Announces a record: global notifications to all clients, the others to subscribers.
    pub(super) fn notify(&mut self, announcement: Announcement) {
        self.shared.counters.stored(&announcement.record);
        if self.writer.thread().turn().is_some() {
            self.subscribers.set_known();
        }
        let count = announcement.notifications.len();
        let usage = match &announcement.record.body {
            RecordBody::Event(event) => match &**event {
                Event::ModelEnded(it) => it.usage.as_ref(),
                Event::ModelUsed(it) => Some(&it.usage),
                _ => None,
            },
            RecordBody::Delta(_) => None,
        };
        if let Some(usage) = usage {
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
            self.subscribers.deliver(&numbered);
            if scope == Scope::Everyone {
                self.notify_others(&Delivery::Notice(notification));
            }
        }
    }

    /// Sends a request to all subscribers.
    pub(super) fn ask(&mut self, request: RequestNumber) {
        self.subscribers.ask(self.writer.thread(), request);
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
        self.subscribers.note_unable(request, subscriber, is_open)
    }

    /// Notifies subscribers of the end, so that they do not wait for further events. The
    /// notification is not a record, so it has no sequence number. The next process that loads the
    /// thread ends or resumes a running turn.
    pub(super) fn notify_end(&mut self, ended: &WriterEnd) {
        let id = self.id;
        if *ended == WriterEnd::Deleted {
            // The others have received the record. For a slow subscriber the records may be gone.
            let deleted = ThreadDeletedNotification { thread_id: id };
            let deleted = Delivery::Notice(Arc::new(deleted.into()));
            return self.subscribers.notice_catching_up(&deleted);
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
        self.subscribers
            .notice(&Delivery::Notice(Arc::new(notification)));
    }

    /// Sends an event of running work, which is not a record, to the subscribers.
    pub(super) fn notice_of_work(&mut self, notification: Notification) {
        match notification {
            Notification::McpToolCallProgress(_) => {
                let progress = Delivery::Notice(Arc::new(notification));
                self.subscribers.notice_with_capacity(&progress);
            }
            Notification::PluginEvent(_) => {
                let event = Delivery::Notice(Arc::new(notification));
                self.subscribers.notice_plugin_event(&event);
            }
            notification => self.notice(notification),
        }
    }

    /// Sends an event that is not a record to all clients.
    pub(super) fn notice_all(&mut self, notification: Notification) {
        let notice = Delivery::Notice(Arc::new(notification));
        self.subscribers.notice(&notice);
        self.notify_others(&notice);
    }

    /// Sends an event to the clients that do not receive it as subscribers.
    fn notify_others(&self, notice: &Delivery) {
        self.shared
            .notify_others(notice, |it| self.subscribers.contains(it));
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
