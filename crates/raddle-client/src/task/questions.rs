//! The server's requests. The handler receives each once; a repeated request gets the same answer.

use std::collections::HashMap;

use bytes::Bytes;
use raddle_protocol::ThreadId;
use raddle_rpc::{ErrorObject, Id, answer, code, refusal};
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, Id as TaskId, JoinSet};

use crate::request_handler::HandlerFn;
use crate::{HandlerAnswer, ServerQuestion};

/// Maximum number of unresolved questions. A server has far fewer.
const KNOWN_MAX: usize = 4096;

/// An answer that the handler did not give: a result, or the reason why this client has none.
pub(crate) type LaterAnswer = Result<Box<RawValue>, ErrorObject>;

pub(super) struct Questions {
    handler: HandlerFn,
    known: HashMap<Id, KnownQuestion>,
    running: JoinSet<Option<Bytes>>,
    /// The question that each task answers.
    tasks: HashMap<TaskId, Id>,
}

/// A question that is not resolved.
struct KnownQuestion {
    thread: Option<ThreadId>,
    state: State,
    /// Whether the follower has received it.
    is_shown: bool,
}

enum State {
    /// The handler works on it.
    Pending(AbortHandle),
    /// The handler left it open.
    Open,
    /// The response that was sent, but possibly not received by the server.
    Answered(Bytes),
}

/// Result of [`Questions::receive`].
pub(super) struct QuestionStatus {
    /// The answer, if there is one already.
    pub(super) answer: Option<Bytes>,
    /// Whether the follower must receive it.
    pub(super) is_new: bool,
}

impl Questions {
    pub(super) fn new(handler: HandlerFn) -> Self {
        Self {
            handler,
            known: HashMap::new(),
            running: JoinSet::new(),
            tasks: HashMap::new(),
        }
    }

    /// Registers a question, which may be a repetition. `shows` is whether a follower can receive
    /// it now.
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
            tracing::warn!(
                ?id,
                "too many open questions; this one is left to other clients"
            );
            return QuestionStatus {
                answer: None,
                is_new: false,
            };
        }
        let answer_future = (self.handler)(question.clone());
        let request_id = id.clone();
        let unable_text = question.unable_text();
        let handle = self.running.spawn(async move {
            match answer_future.await {
                HandlerAnswer::Given(output) => Some(answer(&request_id, &output)),
                HandlerAnswer::Open => None,
                HandlerAnswer::Unable => {
                    let why = ErrorObject::new(code::METHOD_NOT_FOUND, unable_text);
                    Some(refusal(Some(&request_id), &why))
                }
            }
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

    /// Returns the next answer to send. Cancel-safe.
    pub(super) async fn next(&mut self) -> Bytes {
        loop {
            let Some(joined) = self.running.join_next_with_id().await else {
                return std::future::pending().await;
            };
            let (task, outcome) = match joined {
                Ok((task, outcome)) => (task, outcome),
                Err(error) if error.is_panic() => {
                    let task = error.id();
                    tracing::error!(%error, "the request handler panicked");
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
            match outcome {
                Some(frame) => {
                    known.state = State::Answered(frame.clone());
                    return frame;
                }
                None => known.state = State::Open,
            }
        }
    }

    /// Answers a question later with [`Client::answer`](crate::Client::answer), or with an error.
    /// Returns `None` if it is already answered or resolved.
    pub(super) fn answer_later(&mut self, id: &Id, outcome: &LaterAnswer) -> Option<Bytes> {
        let known = self.known.get_mut(id)?;
        match &known.state {
            State::Answered(_) => return None,
            State::Open => {}
            State::Pending(handle) => {
                // The task may have finished already; its answer is discarded.
                self.tasks.remove(&handle.id());
                handle.abort();
            }
        }
        let frame = match outcome {
            Ok(output) => answer(id, output),
            Err(why) => refusal(Some(id), why),
        };
        known.state = State::Answered(frame.clone());
        Some(frame)
    }

    /// Removes a resolved question.
    pub(super) fn resolve(&mut self, id: &Id) {
        if let Some(known) = self.known.remove(id) {
            known.drop_answer(&mut self.tasks);
        }
    }

    /// Forgets the questions of a thread. Either its turn has ended, which resolves them, or it has
    /// no follower, and the server repeats them when it has one again.
    pub(super) fn forget_thread(&mut self, thread: ThreadId) {
        let forgotten = self
            .known
            .extract_if(|_, known| known.thread == Some(thread));
        forgotten.for_each(|(_, known)| known.drop_answer(&mut self.tasks));
    }

    /// Marks the questions of a thread as not shown.
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
    /// Cancels the handler, and forgets its answer even if it is finished: the server may ask the
    /// same again.
    fn drop_answer(self, tasks: &mut HashMap<TaskId, Id>) {
        if let State::Pending(handle) = self.state {
            tasks.remove(&handle.id());
            handle.abort();
        }
    }
}
