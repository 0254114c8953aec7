//! What the server asks: each question is put once, and its answer is given as often as it is asked for.

use std::collections::HashMap;

use bytes::Bytes;
use raddle_protocol::ThreadId;
use raddle_rpc::{ErrorObject, Id, answer, code, refusal};
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, Id as TaskId, JoinSet};

use crate::ServerQuestion;
use crate::request_handler::HandlerFn;

/// How many questions may be known at once. A server asks far fewer.
const KNOWN_MAX: usize = 4096;

pub(super) struct Questions {
    asker: HandlerFn,
    known: HashMap<Id, KnownQuestion>,
    running: JoinSet<Option<Bytes>>,
    /// Which question each of these is.
    tasks: HashMap<TaskId, Id>,
}

/// A question that is not settled.
struct KnownQuestion {
    thread: Option<ThreadId>,
    state: State,
    /// Whether whoever follows the thread was shown it.
    is_shown: bool,
}

enum State {
    /// Someone was asked.
    Pending(AbortHandle),
    /// Whoever was asked leaves it open.
    Open,
    /// It was answered so. The server may not have heard it.
    Answered(Bytes),
}

/// What is to be done about a question.
pub(super) struct QuestionStatus {
    /// The answer, if it was given before.
    pub(super) answer: Option<Bytes>,
    /// Whether it is to be shown.
    pub(super) is_new: bool,
}

impl Questions {
    pub(super) fn new(asker: HandlerFn) -> Self {
        Self {
            asker,
            known: HashMap::new(),
            running: JoinSet::new(),
            tasks: HashMap::new(),
        }
    }

    /// Hears a question, which may have been asked before. `shows` says whether it can be shown now.
    pub(super) fn receive(
        &mut self,
        id: &Id,
        thread: Option<ThreadId>,
        question: &ServerQuestion,
        shows: bool,
    ) -> QuestionStatus {
        if let Some(known) = self.known.get_mut(id) {
            let is_new = shows && !known.is_shown;
            known.is_shown |= shows;
            let answer = match &known.state {
                State::Answered(frame) => Some(frame.clone()),
                State::Pending(_) | State::Open => None,
            };
            return QuestionStatus { answer, is_new };
        }
        if self.known.len() >= KNOWN_MAX {
            tracing::warn!(%id, "too many questions are open; this one is left to others");
            return QuestionStatus {
                answer: None,
                is_new: false,
            };
        }
        let answering = (self.asker)(question.clone());
        let asked = id.clone();
        let handle = self.running.spawn(async move {
            let said = answering.await?;
            Some(answer(&asked, &said))
        });
        self.tasks.insert(handle.id(), id.clone());
        let known = KnownQuestion {
            thread,
            state: State::Pending(handle),
            is_shown: shows,
        };
        self.known.insert(id.clone(), known);
        QuestionStatus {
            answer: None,
            is_new: shows,
        }
    }

    /// The next answer to send. May be dropped while it waits.
    pub(super) async fn next(&mut self) -> Bytes {
        loop {
            let Some(joined) = self.running.join_next_with_id().await else {
                return std::future::pending().await;
            };
            let (task, said) = match joined {
                Ok((task, said)) => (task, said),
                Err(error) if error.is_panic() => {
                    let task = error.id();
                    tracing::error!(%error, "whoever answers questions panicked");
                    let why = ErrorObject::new(code::INTERNAL, "the client failed to answer");
                    let id = self.tasks.get(&task);
                    (task, id.map(|id| refusal(Some(id), &why)))
                }
                Err(error) => {
                    self.tasks.remove(&error.id());
                    continue;
                }
            };
            let Some(known) = self
                .tasks
                .remove(&task)
                .and_then(|id| self.known.get_mut(&id))
            else {
                continue;
            };
            match said {
                Some(frame) => {
                    known.state = State::Answered(frame.clone());
                    return frame;
                }
                None => known.state = State::Open,
            }
        }
    }

    /// The answer to a question that was left open, if it still is.
    pub(super) fn answered_later(&mut self, id: &Id, said: &RawValue) -> Option<Bytes> {
        let known = self.known.get_mut(id)?;
        let frame = match &known.state {
            State::Answered(_) => return None,
            State::Open => answer(id, &said),
            State::Pending(handle) => {
                // It may have ended already, and what it says is too late.
                self.tasks.remove(&handle.id());
                handle.abort();
                answer(id, &said)
            }
        };
        known.state = State::Answered(frame.clone());
        Some(frame)
    }

    /// It is settled.
    pub(super) fn settled(&mut self, id: &Id) {
        if let Some(known) = self.known.remove(id) {
            known.drop_answer(&mut self.tasks);
        }
    }

    /// A turn of this thread is over, and all that was asked in it; or nobody follows it, and what is open is asked
    /// again when someone does.
    pub(super) fn forget_thread(&mut self, thread: ThreadId) {
        let of = self
            .known
            .extract_if(|_, known| known.thread == Some(thread));
        of.for_each(|(_, known)| known.drop_answer(&mut self.tasks));
    }

    /// What was shown of this thread is shown no more.
    pub(super) fn hide(&mut self, thread: ThreadId) {
        for known in self.known.values_mut() {
            known.is_shown &= known.thread != Some(thread);
        }
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.tasks.clear();
        self.running.abort_all();
    }
}

impl KnownQuestion {
    /// Nobody needs the answer any more, also if it is there already: the same may be asked anew.
    fn drop_answer(self, tasks: &mut HashMap<TaskId, Id>) {
        if let State::Pending(handle) = self.state {
            tasks.remove(&handle.id());
            handle.abort();
        }
    }
}
