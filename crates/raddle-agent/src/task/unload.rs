//! Leaving a thread that need not be in memory.

use std::time::Duration;

use raddle_core::{Command, Envelope, Refusal, Token, WriterEnd};
use raddle_protocol::{ThreadClosedNotification, ThreadStatus, ThreadStatusChangedNotification};
use tokio::time::Instant;

use super::{Task, TaskEnd, TaskMessage};
use crate::AgentError;

/// How long a thread stays in memory to which nobody listens and in which nothing happens.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Why a thread is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnloadReason {
    /// Nobody needs it.
    Idle,
    /// Someone asked for what implies it, and everyone has been told.
    Requested,
}

impl Task {
    /// How much longer the thread stays; nothing when there is a reason to.
    pub(super) fn idle_remaining(&mut self) -> Option<Duration> {
        self.subscriptions
            .retain(|seat| seat.subscriber.is_connected());
        let waits = self.starter.is_some() || !self.callers.is_empty();
        let runs = self.owner.thread().turn().is_some();
        if waits || runs || self.closed || !self.subscriptions.is_empty() {
            self.idle_since = None;
            return None;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        Some(IDLE_MAX.saturating_sub(since.elapsed()))
    }

    /// Takes nothing more in and leaves in good order. What comes from now on is for whoever opens the
    /// thread next.
    pub(super) fn unload(&mut self, why: UnloadReason) {
        self.unloading = Some(why);
        self.inbox.close();
        self.closed = true;
    }

    /// The last order of all, behind those that are there.
    pub(super) fn release(&mut self) {
        if !self.closed || self.released {
            return;
        }
        self.tokens += 1;
        let release = Envelope::command(Token(self.tokens), Command::Release);
        self.released = self.owner.offer(release).is_ok();
    }

    pub(super) async fn finish(mut self, ended: WriterEnd) -> TaskEnd {
        self.inbox.close();
        let mut late = std::mem::take(&mut self.late);
        // Whoever found a place before it was closed may still be about to use it: only the end of the
        // inbox says that nothing more comes.
        while let Some(message) = self.inbox.recv().await {
            late.push(message);
        }
        // A thread that is left need not be opened to be left again.
        late.retain(|message| !matches!(message, TaskMessage::Unload));
        if self.unloading.is_none() {
            let why = match ended {
                WriterEnd::Deleted => Refusal::Deleted.into(),
                _ => AgentError::Ended,
            };
            late.drain(..)
                .for_each(|message| message.refuse(why.clone()));
        }
        let head = self.owner.thread().head();
        TaskEnd { ended, head, late }
    }

    /// The thread is no longer in memory; who did not know that it was is not told.
    pub(super) fn say_not_loaded(&mut self) {
        if self.is_known {
            let status = ThreadStatusChangedNotification {
                thread_id: self.id,
                status: ThreadStatus::NotLoaded,
            };
            self.notice_all(status.into());
        }
    }

    pub(super) fn say_goodbye(&mut self) {
        if self.unloading == Some(UnloadReason::Idle) && self.is_known {
            self.say_not_loaded();
            self.notice_all(ThreadClosedNotification { thread_id: self.id }.into());
        }
    }
}
