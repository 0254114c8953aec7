//! The threads that are followed, and how each goes on.

use std::sync::Arc;
use std::time::Duration;

use raddle_protocol::{Notification, RequestId, ThreadId};
use raddle_rpc::{ErrorObject, Id, InboundNotification as Told, InboundRequest, code, refusal};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{Task, UNREAD_MAX};
use crate::queue::EventQueue;
use crate::{OpenQuestion, ServerQuestion, ThreadEvent};

/// How many words that have no number yet are remembered.
const LOOSE_MAX: usize = 64;

/// How long a thread waits to be asked for again when the server has too much to do.
const RETRY: Duration = Duration::from_secs(1);

/// A thread that is followed.
pub(super) struct FollowedThread {
    pub(super) queue: Arc<EventQueue>,
    /// The number of the last record that was queued; none if the thread must be shown anew.
    cursor: Option<u64>,
    pub(super) state: State,
    /// What was told since that number and has none. It is told again by whoever goes on after the number.
    loose: Vec<(String, String)>,
    /// The same from before the connection was lost, as far as it was not told again.
    repeated: Vec<(String, String)>,
    is_archived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// What comes is queued.
    Live,
    /// What comes is passed over until there is room, and then asked for again.
    Lagging,
    /// It was asked for, and what comes is passed over until the answer.
    Resuming,
    /// It is asked for again then.
    Retry(Instant),
}

impl FollowedThread {
    pub(super) fn new(cursor: Option<u64>, stirred: Arc<Notify>) -> Self {
        Self {
            queue: EventQueue::new(stirred),
            cursor,
            state: State::Live,
            loose: Vec::new(),
            repeated: Vec::new(),
            is_archived: false,
        }
    }

    /// The connection is lost.
    pub(super) fn cut(&mut self, why: &str) {
        let why = why.to_owned();
        self.queue.push(ThreadEvent::Disconnected { why }, 0);
        self.state = State::Resuming;
    }

    /// Queues what was told, unless it was before.
    fn push(&mut self, told: &Told<'_>, bytes: usize) {
        let params = told.params.map_or("null", RawValue::get);
        if told.seq.is_some() {
            self.cursor = told.seq;
            self.loose.clear();
            self.repeated.clear();
        } else if told.method != "turn/progress" {
            let word = (told.method.clone().into_owned(), params.to_owned());
            let before = self.repeated.iter().position(|it| *it == word);
            if self.loose.len() < LOOSE_MAX {
                self.loose.push(word);
            }
            if let Some(at) = before {
                self.repeated.remove(at);
                return;
            }
        }
        let happening = match Notification::read(&told.method, params) {
            Some(Ok(notification)) => ThreadEvent::Notification {
                notification: Box::new(notification),
                seq: told.seq,
            },
            known => {
                if let Some(Err(error)) = known {
                    tracing::warn!(method = %told.method, %error, "what was told is not understood");
                }
                ThreadEvent::Unknown {
                    method: told.method.clone().into_owned(),
                    params: told.params.unwrap_or(RawValue::NULL).to_owned(),
                    seq: told.seq,
                }
            }
        };
        self.queue.push(happening, bytes);
    }
}

/// Whom a message is about.
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
    pub(super) fn told(&mut self, told: &Told<'_>, bytes: usize) {
        let about = MessageSubject::of(told.params);
        let thread = about.thread();
        match (&*told.method, thread) {
            ("serverRequest/resolved", _) => {
                if let Some(id) = about.request_id {
                    self.questions.settled(&of_wire(id));
                }
            }
            ("turn/completed", Some(thread)) => self.questions.forget_thread(thread),
            _ => {}
        }
        let followed = thread.and_then(|id| Some((id, self.follows.get_mut(&id)?)));
        let Some((thread, followed)) = followed else {
            return self.notice(told);
        };
        if followed.state != State::Live {
            return;
        }
        followed.push(told, bytes);
        match &*told.method {
            "thread/archived" => followed.is_archived = true,
            "thread/unarchived" => followed.is_archived = false,
            // What was told before is not so any more.
            "thread/reverted" => {
                followed.cursor = None;
                self.go_on(thread);
            }
            // The server let go of it, and may take it up again.
            "thread/closed" if !followed.is_archived => self.go_on(thread),
            "thread/closed" => self.lose(thread, "the thread was archived".to_owned()),
            "thread/deleted" => self.lose(thread, "the thread was deleted".to_owned()),
            _ => {}
        }
    }

    /// Hands on what is about no thread that is followed.
    fn notice(&self, told: &Told<'_>) {
        if self.notices.receiver_count() == 0 {
            return;
        }
        let params = told.params.map_or("null", RawValue::get);
        if let Some(Ok(notification)) = Notification::read(&told.method, params) {
            // Whoever listened may have left.
            let _ = self.notices.send(notification);
        }
    }

    /// Puts a question; the answer if there is one already.
    pub(super) fn asked(
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
        let heard = self
            .questions
            .receive(&request.id, thread, &question, followed.is_some());
        if let Some(followed) = followed.filter(|_| heard.is_new) {
            let id = to_wire(&request.id);
            let asked = OpenQuestion { id, question };
            followed.queue.push(ThreadEvent::Question(asked), bytes);
        }
        heard.answer
    }

    /// Asks for a thread from where it stands.
    pub(super) fn go_on(&mut self, thread: ThreadId) {
        let Some(followed) = self.follows.get_mut(&thread) else {
            return;
        };
        followed.state = State::Resuming;
        let after = followed.cursor.filter(|_| self.is_numbered);
        self.rejoin(thread, after);
    }

    /// A thread was asked for, and this is the answer.
    pub(super) fn rejoined(
        &mut self,
        thread: ThreadId,
        after: Option<u64>,
        outcome: Result<&RawValue, ErrorObject>,
    ) {
        let Some(followed) = self.follows.get_mut(&thread) else {
            // Nobody follows it any more, and the server was told so; someone may have asked for it anew since.
            return;
        };
        match outcome {
            Ok(_) if after.is_some() => {
                followed.state = State::Live;
                // What the last connection did not come to tell again is still to be told again.
                let mut before = std::mem::take(&mut followed.loose);
                before.append(&mut followed.repeated);
                followed.repeated = before;
                followed.queue.push(ThreadEvent::Reconnected, 0);
            }
            Ok(shown) => match serde_json::from_str(shown.get()) {
                Ok(head) => {
                    followed.state = State::Live;
                    followed.cursor = None;
                    followed.loose.clear();
                    followed.repeated.clear();
                    let bytes = shown.get().len();
                    followed
                        .queue
                        .push(ThreadEvent::Reset(Box::new(head)), bytes);
                    // Everything that is open is asked again.
                    self.questions.hide(thread);
                }
                Err(error) => self.lose(thread, error.to_string()),
            },
            Err(error) if is_expired(&error) && after.is_some() => {
                followed.cursor = None;
                self.go_on(thread);
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

    /// Lets go of threads that nobody follows, and sees to it that those who are slow do not hold up the others.
    pub(super) fn look_after_follows(&mut self) {
        let left: Vec<_> = self.matching(|it| it.queue.is_closed());
        for thread in left {
            self.follows.remove(&thread);
            self.questions.forget_thread(thread);
            self.unsubscribe(thread);
        }
        let full = self.matching(|it| it.state == State::Live && it.queue.is_full());
        let now = Instant::now();
        self.paused_until = match (full.is_empty(), self.paused_until) {
            (true, _) => None,
            // An answer that someone waits for may stand behind what there is no room for.
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
            self.go_on(thread);
        }
    }

    /// Resolves when a thread is to be asked for again.
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

    pub(super) fn matching(&self, which: impl Fn(&FollowedThread) -> bool) -> Vec<ThreadId> {
        let those = self.follows.iter().filter(|(_, it)| which(it));
        those.map(|(thread, _)| *thread).collect()
    }
}

fn is_expired(error: &ErrorObject) -> bool {
    let info = error.data.as_ref().and_then(|it| it.get("errorInfo"));
    info.is_some_and(|it| it == "cursorExpired")
}

fn of_wire(id: RequestId) -> Id {
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
