//! A followed thread: its events and its view.

use std::sync::Arc;

use raddle_protocol::methods::TurnStart;
use raddle_protocol::{
    Notification, ThreadId, Turn, TurnStartParams, TurnStartResponse, UserInput,
};

use crate::queue::EventQueue;
use crate::view::ThreadHead;
use crate::{CallError, Client, ThreadEvent, ThreadView};

/// The events of one thread, in order and each exactly once, even if the connection or the server
/// fails meanwhile.
///
/// Dropping it unsubscribes from the thread. The thread itself keeps running.
#[derive(Debug)]
pub struct ThreadFollower {
    client: Client,
    queue: Arc<EventQueue>,
    view: ThreadView,
}

impl ThreadFollower {
    pub(crate) fn new(client: Client, queue: Arc<EventQueue>, head: ThreadHead) -> Self {
        Self {
            client,
            queue,
            view: ThreadView::of(head),
        }
    }

    /// Id of the thread.
    pub fn id(&self) -> ThreadId {
        self.view.thread.id
    }

    /// The thread as of the last event that [`next`](Self::next) returned.
    pub fn thread(&self) -> &ThreadView {
        &self.view
    }

    /// The client that owns the connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the next event, or `None` after the last. Cancel-safe: dropping the future loses no
    /// event.
    pub async fn next(&mut self) -> Option<ThreadEvent> {
        let event = self.queue.pop().await?;
        self.view.apply(&event);
        Some(event)
    }

    /// Sends text to the thread. It starts a turn, or joins the running one.
    pub async fn say(&self, text: impl Into<String>) -> Result<TurnStartResponse, CallError> {
        let params = TurnStartParams::of(self.id(), vec![UserInput::text(text)]);
        self.client.call::<TurnStart>(params).await
    }

    /// Consumes events until a turn completes, and returns that turn with its items. Returns `None`
    /// if the thread is lost first.
    pub async fn finish(&mut self) -> Option<Turn> {
        loop {
            match self.next().await? {
                ThreadEvent::Notification { notification, .. } => {
                    if let Notification::TurnCompleted(it) = *notification {
                        let turns = &self.view.thread.turns;
                        let turn = turns.iter().rev().find(|turn| turn.id == it.turn.id);
                        return turn.cloned().or(Some(it.turn));
                    }
                }
                // The turn may have completed before the reset.
                ThreadEvent::Reset(_) => {
                    let last = self.view.thread.turns.last();
                    if let Some(turn) = last.filter(|turn| !ThreadView::is_running(turn)) {
                        return Some(turn.clone());
                    }
                }
                _ => {}
            }
        }
    }
}

impl Drop for ThreadFollower {
    fn drop(&mut self) {
        self.queue.close();
    }
}
