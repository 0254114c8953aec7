//! Notifications of hooks on input, which an interrupt may end.

use raddle_core::Timestamp;
use raddle_core::ports::BoxFuture;
use raddle_protocol::{
    HookCompletedNotification, HookOutputEntry, HookOutputEntryKind, HookRunStatus,
    HookStartedNotification, Notification,
};
use tokio::sync::watch;

use super::NoticeSink;

/// Passes notifications on, and keeps the runs that have not ended.
pub(crate) struct InputNotices<S> {
    sink: S,
    running: watch::Sender<Vec<HookStartedNotification>>,
}

impl<S: NoticeSink> InputNotices<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self {
            sink,
            running: watch::Sender::new(Vec::new()),
        }
    }

    /// Waits until a hook runs.
    pub(crate) async fn hook_runs(&self) {
        let mut running = self.running.subscribe();
        // It fails only without a sender, and `self` is one.
        let _ = running.wait_for(|it| !it.is_empty()).await;
    }

    /// Reports the end of the hooks that run, after an interrupt.
    pub(crate) async fn end_interrupted(&self, now: Timestamp) {
        for started in self.running.send_replace(Vec::new()) {
            let HookStartedNotification {
                thread_id,
                turn_id,
                mut run,
            } = started;
            run.status = HookRunStatus::Failed;
            run.completed_at = Some(now.0.div_euclid(1000));
            let started_at = Timestamp(run.started_at.saturating_mul(1000));
            run.duration_ms = Some(now.since(started_at));
            run.entries = vec![HookOutputEntry {
                kind: HookOutputEntryKind::Error,
                text: "it was ended by an interrupt".to_owned(),
            }];
            let completed = HookCompletedNotification {
                thread_id,
                turn_id,
                run,
            };
            self.sink.send(completed.into()).await;
        }
    }
}

impl<S: NoticeSink> NoticeSink for InputNotices<S> {
    fn send(&self, notification: Notification) -> BoxFuture<'_, ()> {
        self.running.send_modify(|running| match &notification {
            Notification::HookStarted(it) => running.push(it.clone()),
            Notification::HookCompleted(it) => {
                running.retain(|started| started.run.id != it.run.id)
            }
            _ => {}
        });
        self.sink.send(notification)
    }
}
