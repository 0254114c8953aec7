//! Progress notifications: what a running turn waits for.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::{ToolRef, TurnId, WaitReason};
use raddle_protocol::{
    Notification, TurnProgressNotification, TurnWaitingFor, TurnWaitingForType as Type,
};
use tokio::time::{Instant, sleep_until};

use super::Task;
use crate::Delivery;

/// Interval of the notifications. The contract is 5 seconds, and delivery takes time too.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(4);

/// Duration of an append after which the turn counts as waiting for storage.
const SLOW_APPEND: Duration = Duration::from_secs(1);

/// Last observed state of the running turn, as it is stored and announced.
#[derive(Default)]
pub(super) struct Progress(Option<ObservedWait>);

struct ObservedWait {
    turn: TurnId,
    waiting_for: WaitReason,
    since: Instant,
    /// Time of the last update.
    updated_at: Instant,
    /// Time of the next notification.
    due: Instant,
}

impl Progress {
    /// Resolves when a notification is due.
    pub(super) async fn due(&self) {
        match &self.0 {
            Some(observed) => sleep_until(observed.due).await,
            None => std::future::pending().await,
        }
    }
}

impl Task {
    /// Updates what the turn waits for, and sends a notification if it is due.
    pub(super) fn update_progress(&mut self) {
        let now = Instant::now();
        if let Some(thread) = self.writer.stored_thread() {
            let previous = self.progress.0.take();
            let turn = thread.turn().map(|it| &it.id);
            self.progress.0 = turn.zip(thread.waiting_for()).map(|(turn, waiting_for)| {
                let previous = previous.filter(|it| it.turn == *turn);
                let due = previous
                    .as_ref()
                    .map_or(now + PROGRESS_INTERVAL, |it| it.due);
                let same = previous.filter(|it| it.waiting_for == waiting_for);
                ObservedWait {
                    turn: turn.clone(),
                    waiting_for,
                    since: same.map_or(now, |it| it.since),
                    updated_at: now,
                    due,
                }
            });
        }
        if self.progress.0.as_ref().is_some_and(|it| it.due <= now) {
            self.send_progress();
        }
    }

    /// Whether any subscriber receives progress.
    pub(super) fn is_progress_wanted(&self) -> bool {
        self.progress.0.is_some() && self.subscribers.want_progress()
    }

    /// Sends what the turn waits for.
    pub(super) fn send_progress(&mut self) {
        let now = Instant::now();
        let is_stored = self.writer.stored_thread().is_some();
        let Some(observed) = &mut self.progress.0 else {
            return;
        };
        observed.due = now + PROGRESS_INTERVAL;
        let is_append_slow = !is_stored && now - observed.updated_at >= SLOW_APPEND;
        let (waiting_for, since) = match is_append_slow {
            true => (with_name(Type::Storage, None), observed.updated_at),
            false => (on_wire(&observed.waiting_for), observed.since),
        };
        let since_ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        let progress = Notification::from(TurnProgressNotification {
            thread_id: self.id,
            turn_id: observed.turn.clone(),
            waiting_for,
            since_ms,
        });
        self.subscribers
            .notice_progress(&Delivery::Notice(Arc::new(progress)));
    }
}

fn on_wire(waiting_for: &WaitReason) -> TurnWaitingFor {
    let for_tool = |kind, it: &ToolRef| TurnWaitingFor {
        item_id: Some(it.item.clone()),
        ..with_name(kind, it.name.as_ref())
    };
    match waiting_for {
        WaitReason::Model(name) => with_name(Type::Model, name.as_ref()),
        WaitReason::Tool(it) => for_tool(Type::Tool, it),
        WaitReason::Approval(it) => for_tool(Type::Approval, it),
        WaitReason::Question(it) => for_tool(Type::Question, it),
        WaitReason::Retry(name) => with_name(Type::Retry, name.as_ref()),
        WaitReason::Nothing => with_name(Type::Server, None),
    }
}

fn with_name(kind: Type, name: Option<&String>) -> TurnWaitingFor {
    TurnWaitingFor {
        kind,
        name: name.cloned(),
        item_id: None,
    }
}
