//! One thread, followed.

use std::sync::Arc;

use raddle_protocol::methods::TurnStart;
use raddle_protocol::{
    Notification, ThreadId, Turn, TurnStartParams, TurnStartResponse, UserInput,
};
use serde_json::value::RawValue;

use crate::queue::EventQueue;
use crate::view::ThreadHead;
use crate::{CallError, Client, OpenQuestion, ThreadView};

/// What happens in one thread, in order and each once, also when the connection breaks or the server dies meanwhile.
///
/// Dropping it stops hearing the thread; the thread itself goes on.
#[derive(Debug)]
pub struct ThreadFollower {
    client: Client,
    queue: Arc<EventQueue>,
    view: ThreadView,
}

/// Something that happened in a thread, or to the way there.
#[expect(
    clippy::large_enum_variant,
    reason = "taken one at a time, and never kept in bulk"
)]
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    /// The server told something.
    Notification {
        /// What.
        notification: Box<Notification>,
        /// The number of the record it tells, if it is the last word about one.
        seq: Option<u64>,
    },
    /// The server told something that this version has no word for.
    Unknown {
        /// Its name.
        method: String,
        /// Its params, unread.
        params: Box<RawValue>,
        /// As above.
        seq: Option<u64>,
    },
    /// The server asks something. [`Answers`](crate::Answers) is asked by itself; this is to show it.
    Question(OpenQuestion),
    /// The connection was lost, and the client tries to come back.
    Disconnected {
        /// How it was lost.
        why: String,
    },
    /// The client is back. What follows goes on exactly after what was told before.
    Reconnected,
    /// The thread was shown anew, because what came after the last record cannot be told exactly any more, or it
    /// went back to an earlier turn. The view is replaced; what follows goes on from there.
    Reset(Box<ThreadHead>),
    /// The end: the thread cannot be followed any more. Nothing comes after this.
    Lost {
        /// Why.
        why: String,
    },
}

impl ThreadFollower {
    pub(crate) fn new(client: Client, queue: Arc<EventQueue>, head: ThreadHead) -> Self {
        Self {
            client,
            queue,
            view: ThreadView::of(head),
        }
    }

    /// The id of the thread.
    pub fn id(&self) -> ThreadId {
        self.view.thread.id
    }

    /// The thread as it is after the last happening that [`next`](Self::next) gave.
    pub fn thread(&self) -> &ThreadView {
        &self.view
    }

    /// The client that follows.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The next happening; nothing when no more will come. It may be dropped while it waits, and nothing is lost.
    pub async fn next(&mut self) -> Option<ThreadEvent> {
        let happening = self.queue.pop().await?;
        self.view.apply(&happening);
        Some(happening)
    }

    /// Hands text to the thread, which begins a turn with it or adds it to the running one.
    pub async fn say(&self, text: impl Into<String>) -> Result<TurnStartResponse, CallError> {
        let params = TurnStartParams::of(self.id(), vec![UserInput::text(text)]);
        self.client.call::<TurnStart>(params).await
    }

    /// Hears on until a turn has ended, and gives it with its items; nothing if the thread is lost before.
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
                // What was shown anew may be over by now.
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
