//! While a turn runs, those who want to know hear what it waits for.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::{ToolRef, TurnId, WaitReason};
use raddle_protocol::{
    Notification, TurnProgressNotification, TurnWaitingFor, TurnWaitingForType as Type,
};
use tokio::time::{Instant, sleep_until};

use super::{Subscription, Task};
use crate::Delivery;

/// How often it is said. What is promised is 5 seconds, and the way to a client takes time too.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(4);

/// A journal that takes longer than this is what the turn waits for.
const SLOW_APPEND: Duration = Duration::from_secs(1);

/// What was last seen of the turn that runs, as it is stored and was told.
#[derive(Default)]
pub(super) struct Progress(Option<ObservedWait>);

struct ObservedWait {
    turn: TurnId,
    waiting_for: WaitReason,
    since: Instant,
    /// When it was last looked at.
    looked: Instant,
    /// When it is to be said next.
    due: Instant,
}

impl Progress {
    /// Resolves when it is time to say something.
    pub(super) async fn due(&self) {
        match &self.0 {
            Some(seen) => sleep_until(seen.due).await,
            None => std::future::pending().await,
        }
    }
}

impl Task {
    /// Looks at what the turn waits for, and says it if it is time.
    pub(super) fn look_at_progress(&mut self) {
        let now = Instant::now();
        if let Some(thread) = self.owner.settled() {
            let before = self.progress.0.take();
            let turn = thread.turn().map(|it| &it.id);
            self.progress.0 = turn.zip(thread.waiting_for()).map(|(turn, waiting_for)| {
                let before = before.filter(|it| it.turn == *turn);
                let due = before.as_ref().map_or(now + PROGRESS_INTERVAL, |it| it.due);
                let same = before.filter(|it| it.waiting_for == waiting_for);
                ObservedWait {
                    turn: turn.clone(),
                    waiting_for,
                    since: same.map_or(now, |it| it.since),
                    looked: now,
                    due,
                }
            });
        }
        if self.progress.0.as_ref().is_some_and(|it| it.due <= now) {
            self.say_progress();
        }
    }

    /// Whether anyone hears what a turn waits for. Who reads for itself has more to hear than that.
    pub(super) fn is_progress_wanted(&self) -> bool {
        self.progress.0.is_some() && self.subscriptions.iter().any(wants)
    }

    /// Says what the turn waits for.
    pub(super) fn say_progress(&mut self) {
        let now = Instant::now();
        let is_stored = self.owner.settled().is_some();
        let Some(seen) = &mut self.progress.0 else {
            return;
        };
        seen.due = now + PROGRESS_INTERVAL;
        let is_held_up = !is_stored && now - seen.looked >= SLOW_APPEND;
        let (waiting_for, since) = match is_held_up {
            true => (named(Type::Storage, None), seen.looked),
            false => (on_wire(&seen.waiting_for), seen.since),
        };
        let since_ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        let progress = Notification::from(TurnProgressNotification {
            thread_id: self.id,
            turn_id: seen.turn.clone(),
            waiting_for,
            since_ms,
        });
        let notice = Delivery::Notice(Arc::new(progress));
        self.subscriptions
            .retain(|seat| !wants(seat) || seat.notice(&notice));
    }
}

fn wants(seat: &Subscription) -> bool {
    !seat.is_catching_up() && seat.subscriber.wants_progress()
}

fn on_wire(waiting_for: &WaitReason) -> TurnWaitingFor {
    let about = |kind, it: &ToolRef| TurnWaitingFor {
        item_id: Some(it.item.clone()),
        ..named(kind, it.name.as_ref())
    };
    match waiting_for {
        WaitReason::Model(name) => named(Type::Model, name.as_ref()),
        WaitReason::Tool(it) => about(Type::Tool, it),
        WaitReason::Approval(it) => about(Type::Approval, it),
        WaitReason::Question(it) => about(Type::Question, it),
        WaitReason::Retry(name) => named(Type::Retry, name.as_ref()),
        WaitReason::Nothing => named(Type::Server, None),
    }
}

fn named(kind: Type, name: Option<&String>) -> TurnWaitingFor {
    TurnWaitingFor {
        kind,
        name: name.cloned(),
        item_id: None,
    }
}
