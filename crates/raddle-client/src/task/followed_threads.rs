//! The followed threads, and how each of them resumes.

use std::sync::Arc;
use std::time::Duration;

use raddle_protocol::{Notification, RequestId, ThreadId};
use raddle_rpc::{ErrorObject, Id, InboundNotification, InboundRequest, code, refusal};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{Task, UNREAD_MAX};
use crate::queue::EventQueue;
use crate::{OpenQuestion, ServerQuestion, ThreadEvent};

/// Maximum number of remembered notifications without a sequence number.
const LOOSE_MAX: usize = 64;

/// Notifications that are no part of a record, so no later one repeats them.
const NEVER_REPEATED: [&str; 2] = ["turn/progress", "item/mcpToolCall/progress"];

/// Delay before `thread/resume` is retried on an overloaded server.
const RETRY: Duration = Duration::from_secs(1);

/// A thread with a follower.
pub(super) struct FollowedThread {
    pub(super) queue: Arc<EventQueue>,
    /// Sequence number of the last queued record; `None` if the thread must be loaded again.
    cursor: Option<u64>,
    pub(super) state: State,
    /// Notifications without a sequence number since `cursor`. A resume after `cursor` repeats
    /// them.
    loose: Vec<(String, String)>,
    /// Notifications without a sequence number from before the disconnect that the server has not
    /// repeated yet.
    repeated: Vec<(String, String)>,
    is_archived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Incoming events are queued.
    Live,
    /// Incoming events are discarded until the queue has drained; then the thread is resumed.
    Lagging,
    /// The thread is being resumed; events are discarded until the response.
    Resuming,
    /// The thread is resumed at this time.
    Retry(Instant),
}

impl FollowedThread {
    pub(super) fn new(cursor: Option<u64>, wake: Arc<Notify>) -> Self {
        Self {
            queue: EventQueue::new(wake),
            cursor,
            state: State::Live,
            loose: Vec::new(),
            repeated: Vec::new(),
            is_archived: false,
        }
    }

    /// Tells the follower that the connection was lost. The thread is resumed on the next one.
    pub(super) fn disconnect(&mut self, why: &str) {
        let why = why.to_owned();
        self.queue.push(ThreadEvent::Disconnected { why }, 0);
        self.state = State::Resuming;
    }

    /// Queues a notification, unless it is a repetition.
    fn push(&mut self, inbound: &InboundNotification<'_>, bytes: usize) {
        let params = inbound.params.map_or("null", RawValue::get);
        if inbound.seq.is_some() {
            self.cursor = inbound.seq;
            self.loose.clear();
            self.repeated.clear();
        } else if !NEVER_REPEATED.contains(&&*inbound.method) {
            let unnumbered = (inbound.method.clone().into_owned(), params.to_owned());
            let repeated_at = self.repeated.iter().position(|it| *it == unnumbered);
            if self.loose.len() < LOOSE_MAX {
                self.loose.push(unnumbered);
            }
            if let Some(at) = repeated_at {
                self.repeated.remove(at);
                return;
            }
        }
        let event = match Notification::read(&inbound.method, params) {
            Some(Ok(notification)) => ThreadEvent::Notification {
                notification: Box::new(notification),
                seq: inbound.seq,
            },
            known => {
                if let Some(Err(error)) = known {
                    tracing::warn!(
                        method = &*inbound.method,
                        error = error.to_string(),
                        "the params of a notification cannot be parsed"
                    );
                }
                ThreadEvent::Unknown {
                    method: inbound.method.clone().into_owned(),
                    params: inbound.params.unwrap_or(RawValue::NULL).to_owned(),
                    seq: inbound.seq,
                }
            }
        };
        self.queue.push(event, bytes);
    }
}

/// The thread and the request that a message refers to.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MessageSubject {
    thread_id: Option<ThreadId>,
    thread: Option<ThreadRef>,
    request_id: Option<RequestId>,
}

#[derive(Deserialize)]
struct ThreadRef {
    id: ThreadId,
}

impl MessageSubject {
    fn of(params: Option<&RawValue>) -> Self {
        let params = params.map_or("null", RawValue::get);
        serde_json::from_str(params).unwrap_or_default()
    }

    fn thread(&self) -> Option<ThreadId> {
        self.thread_id.or(self.thread.as_ref().map(|it| it.id))
    }
}

impl Task {
    pub(super) fn handle_notification(&mut self, inbound: &InboundNotification<'_>, bytes: usize) {
        let subject = MessageSubject::of(inbound.params);
        let thread = subject.thread();
        match (&*inbound.method, thread) {
            ("serverRequest/resolved", _) => {
                if let Some(id) = subject.request_id {
                    self.questions.resolve(&from_wire(id));
                }
            }
            ("turn/completed", Some(thread)) => self.questions.forget_thread(thread),
            _ => {}
        }
        let followed = thread.and_then(|id| Some((id, self.follows.get_mut(&id)?)));
        let Some((thread, followed)) = followed else {
            return self.notice(inbound);
        };
        if followed.state != State::Live {
            return;
        }
        followed.push(inbound, bytes);
        match &*inbound.method {
            "thread/archived" => followed.is_archived = true,
            "thread/unarchived" => followed.is_archived = false,
            // The events so far are no longer valid.
            "thread/reverted" => {
                followed.cursor = None;
                self.resume(thread);
            }
            // The server unloaded the thread, and may load it again.
            "thread/closed" if !followed.is_archived => self.resume(thread),
            "thread/closed" => self.lose(thread, "the thread was archived".to_owned()),
            "thread/deleted" => self.lose(thread, "the thread was deleted".to_owned()),
            _ => {}
        }
    }

    /// Forwards a notification that belongs to no followed thread.
    fn notice(&self, inbound: &InboundNotification<'_>) {
        if self.notices.receiver_count() == 0 {
            return;
        }
        let params = inbound.params.map_or("null", RawValue::get);
        if let Some(Ok(notification)) = Notification::read(&inbound.method, params) {
            // The receivers may be gone.
            let _ = self.notices.send(notification);
        }
    }

    /// Passes a request to the handler. Returns a response if there is one already.
    pub(super) fn handle_request(
        &mut self,
        request: &InboundRequest<'_>,
        bytes: usize,
    ) -> Option<bytes::Bytes> {
        let thread = MessageSubject::of(request.params).thread();
        let params = request.params.map_or("null", RawValue::get);
        let question = match ServerQuestion::read(&request.method, params) {
            Some(Ok(question)) => question,
            Some(Err(error)) => {
                let why = format!("this client does not understand the params: {error}");
                let why = ErrorObject::new(code::INVALID_PARAMS, why);
                return Some(refusal(Some(&request.id), &why));
            }
            None => {
                let why = format!("this client does not answer {}", request.method);
                let why = ErrorObject::new(code::METHOD_NOT_FOUND, why);
                return Some(refusal(Some(&request.id), &why));
            }
        };
        let followed = thread.and_then(|id| self.follows.get(&id));
        let followed = followed.filter(|it| it.state == State::Live);
        let status = self
            .questions
            .receive(&request.id, thread, &question, followed.is_some());
        if let Some(followed) = followed.filter(|_| status.is_new) {
            let id = to_wire(&request.id);
            let open_question = OpenQuestion { id, question };
            followed
                .queue
                .push(ThreadEvent::Question(open_question), bytes);
        }
        status.answer
    }

    /// Resumes a thread after its cursor.
    pub(super) fn resume(&mut self, thread: ThreadId) {
        let Some(followed) = self.follows.get_mut(&thread) else {
            return;
        };
        followed.state = State::Resuming;
        let after = followed.cursor.filter(|_| self.is_numbered);
        self.rejoin(thread, after);
    }

    /// Handles the response to `thread/resume`.
    pub(super) fn handle_resumed(
        &mut self,
        thread: ThreadId,
        after: Option<u64>,
        outcome: Result<&RawValue, ErrorObject>,
    ) {
        let Some(followed) = self.follows.get_mut(&thread) else {
            // The follower was dropped, and the thread unsubscribed. A newer call may have opened
            // it again since.
            return;
        };
        match outcome {
            Ok(_) if after.is_some() => {
                followed.state = State::Live;
                // Keep the expected repetitions that the last connection did not get to.
                let mut expected = std::mem::take(&mut followed.loose);
                expected.append(&mut followed.repeated);
                followed.repeated = expected;
                followed.queue.push(ThreadEvent::Reconnected, 0);
            }
            Ok(snapshot) => match serde_json::from_str(snapshot.get()) {
                Ok(head) => {
                    followed.state = State::Live;
                    followed.cursor = None;
                    followed.loose.clear();
                    followed.repeated.clear();
                    let bytes = snapshot.get().len();
                    followed
                        .queue
                        .push(ThreadEvent::Reset(Box::new(head)), bytes);
                    // The server repeats every open question.
                    self.questions.hide(thread);
                }
                Err(error) => self.lose(thread, error.to_string()),
            },
            Err(error) if is_expired(&error) && after.is_some() => {
                followed.cursor = None;
                self.resume(thread);
            }
            Err(error) if error.code == code::OVERLOADED => {
                followed.state = State::Retry(Instant::now() + RETRY);
            }
            Err(error) => self.lose(thread, error.message.into_owned()),
        }
    }

    fn lose(&mut self, thread: ThreadId, why: String) {
        if let Some(followed) = self.follows.remove(&thread) {
            followed.queue.push(ThreadEvent::Lost { why }, 0);
            followed.queue.end();
        }
    }

    /// Removes dropped followers, and keeps slow followers from blocking the others.
    pub(super) fn maintain_followers(&mut self) {
        let dropped: Vec<_> = self.matching(|it| it.queue.is_closed());
        for thread in dropped {
            self.follows.remove(&thread);
            self.questions.forget_thread(thread);
            self.unsubscribe(thread);
        }
        let full = self.matching(|it| it.state == State::Live && it.queue.is_full());
        let now = Instant::now();
        self.paused_until = match (full.is_empty(), self.paused_until) {
            (true, _) => None,
            // A response that a caller waits for may be queued behind the events of the full
            // follower.
            _ if self.follows.len() > 1 || !self.calls.is_empty() => None,
            (false, None) => Some(now + UNREAD_MAX),
            (false, Some(until)) if until > now => Some(until),
            (false, Some(_)) => None,
        };
        if self.paused_until.is_none() {
            for thread in full {
                if let Some(followed) = self.follows.get_mut(&thread) {
                    followed.state = State::Lagging;
                }
            }
        }
        let ready = self.matching(|it| match it.state {
            State::Lagging => it.queue.is_low(),
            State::Retry(at) => at <= now,
            State::Live | State::Resuming => false,
        });
        for thread in ready {
            self.resume(thread);
        }
    }

    /// Resolves when a thread is due for another resume.
    pub(super) fn next_retry(&self) -> impl Future<Output = ()> + use<> {
        let retries = self.follows.values().filter_map(|it| match it.state {
            State::Retry(at) => Some(at),
            _ => None,
        });
        let next = retries.min();
        async move {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn matching(&self, predicate: impl Fn(&FollowedThread) -> bool) -> Vec<ThreadId> {
        let matches = self.follows.iter().filter(|(_, it)| predicate(it));
        matches.map(|(thread, _)| *thread).collect()
    }
}

fn is_expired(error: &ErrorObject) -> bool {
    let info = error.data.as_ref().and_then(|it| it.get("errorInfo"));
    info.is_some_and(|it| it == "cursorExpired")
}

fn from_wire(id: RequestId) -> Id {
    match id {
        RequestId::String(text) => Id::String(text),
        RequestId::Integer(number) => Id::Integer(number),
    }
}

fn to_wire(id: &Id) -> RequestId {
    match id {
        Id::String(text) => RequestId::String(text.clone()),
        Id::Integer(number) => RequestId::Integer(*number),
    }
}
