//! Unloading a thread that need not be in memory.

use std::time::Duration;

use raddle_core::{Command, Envelope, Refusal, Token, WriterEnd};
use raddle_protocol::{ThreadClosedNotification, ThreadStatus, ThreadStatusChangedNotification};
use tokio::time::Instant;

use super::{Task, TaskEnd, TaskMessage};
use crate::AgentError;

/// Limit: time an idle thread without subscribers stays loaded; beyond it, the thread is unloaded
/// with `notLoaded` and `thread/closed`; the next request opens it again, except `turn/start` of a
/// client without extensions.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Reason why a thread is unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnloadReason {
    /// It is not in use.
    Idle,
    /// A command implies it, and the clients are notified.
    Requested,
}

impl Task {
    /// Time until the thread is unloaded; `None` while it is in use.
    pub(super) fn idle_remaining(&mut self) -> Option<Duration> {
        self.subscribers.remove_disconnected();
        let waits = self.subscribers.has_starter() || !self.callers.is_empty();
        let runs = self.writer.thread().turn().is_some();
        if waits || runs || self.closed || !self.subscribers.is_empty() {
            self.idle_since = None;
            return None;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        Some(IDLE_MAX.saturating_sub(since.elapsed()))
    }

    /// Closes the inbox and unloads the thread. Later messages go to the next task of the thread.
    pub(super) fn unload(&mut self, why: UnloadReason) {
        self.unloading = Some(why);
        self.inbox.close();
        self.closed = true;
    }

    /// Offers the release command, behind all others.
    pub(super) fn release(&mut self) {
        if !self.closed || self.released {
            return;
        }
        self.tokens += 1;
        let release = Envelope::command(Token(self.tokens), Command::Release);
        self.released = self.writer.offer(release).is_ok();
    }

    pub(super) async fn finish(mut self, ended: WriterEnd) -> TaskEnd {
        self.inbox.close();
        let mut late = std::mem::take(&mut self.late);
        // A sender that reserved a slot before the close may still use it. Only the end of the
        // inbox shows that no message follows.
        while let Some(message) = self.inbox.recv().await {
            late.push(message);
        }
        // An unloaded thread need not be loaded to be unloaded again.
        late.retain(|message| !matches!(message, TaskMessage::Unload));
        if self.unloading.is_none() {
            let why = match ended {
                WriterEnd::Deleted => Refusal::Deleted.into(),
                _ => AgentError::Ended,
            };
            late.drain(..)
                .for_each(|message| message.refuse(why.clone()));
        }
        let head = self.writer.thread().head();
        TaskEnd { ended, head, late }
    }

    /// Notifies that the thread is no longer in memory, unless no client knew that it was.
    pub(super) fn notify_not_loaded(&mut self) {
        if self.subscribers.is_known() {
            let status = ThreadStatusChangedNotification {
                thread_id: self.id,
                status: ThreadStatus::NotLoaded,
            };
            self.notice_all(status.into());
        }
    }

    pub(super) fn notify_unloaded(&mut self) {
        if self.unloading == Some(UnloadReason::Idle) && self.subscribers.is_known() {
            self.notify_not_loaded();
            self.notice_all(ThreadClosedNotification { thread_id: self.id }.into());
        }
    }
}
