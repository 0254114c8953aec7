//! The open calls of a plugin, and to which of them a call of the host belongs.

mod running_acts;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use raddle_core::ThreadId;
use raddle_core::ports::PluginActs;
use serde_json::Value;

pub(super) use self::running_acts::RunningAct;
use self::running_acts::RunningActs;
use super::answer_channel::AnswerSender;
use super::stopped_calls::StoppedCalls;
use crate::mcp::{CallElicitations, CallUser, Elicitations};

/// Member of the params of a host call and of an event: the id of the request that the plugin is
/// answering.
pub(super) const CALL_ID: &str = "call_id";

/// Longest part of an unknown id that is shown.
const EXCERPT_BYTES_MAX: usize = 200;

/// The calls of one plugin that have no result.
pub(super) struct OpenCalls {
    elicitations: Arc<Elicitations>,
    /// Calls that were stopped, and have no response.
    pub(super) stopped: Arc<StoppedCalls>,
    table: Mutex<CallTable>,
}

#[derive(Default)]
struct CallTable {
    next: u64,
    /// By their number, so the newest is the last.
    calls: BTreeMap<u64, Arc<OpenCall>>,
}

/// A call that has no result.
pub(super) struct OpenCall {
    /// Id of the request, once it is sent.
    id: OnceLock<String>,
    /// The thread that made it; `None` if a client made it outside of a turn.
    thread: Option<ThreadId>,
    /// Receives the answer of a model.
    pub(super) answer: Option<AnswerSender>,
    /// Acts in the thread that made it.
    pub(super) acts: Option<Arc<dyn PluginActs>>,
    running_acts: Arc<RunningActs>,
    /// Its questions to the user.
    pub(super) questions: CallElicitations,
    /// Held while the user is asked for a permission. A call that asks twice at once has one
    /// question at a time.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// Reason why a host call or an event belongs to no call of the plugin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallLookupError {
    #[error("no call of the plugin is open; call the host in the middle of a call")]
    NoCall,
    #[error(
        "calls of several threads are open or were stopped; send `call_id`, the id of the request \
         that the plugin is answering"
    )]
    SeveralThreads,
    #[error(
        "no open call has the `call_id` {0:?}; send the id of the request that the plugin is \
         answering"
    )]
    UnknownId(String),
    #[error("`call_id` must be a string, the id of the request that the plugin is answering")]
    InvalidId,
}

impl CallLookupError {
    /// Returns the error about an id that no open call has.
    pub(super) fn unknown(id: &str) -> Self {
        let excerpt = &id[..id.floor_char_boundary(EXCERPT_BYTES_MAX)];
        Self::UnknownId(excerpt.to_owned())
    }
}

impl OpenCalls {
    /// Creates the table of a plugin with this id.
    pub(super) fn new(plugin: String) -> Arc<Self> {
        Arc::new(Self {
            elicitations: Elicitations::new(plugin),
            stopped: Arc::default(),
            table: Mutex::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Without a user its questions are declined, and it has no acts.
    pub(super) fn add(
        self: &Arc<Self>,
        user: Option<CallUser>,
        acts: Option<Arc<dyn PluginActs>>,
        answer: Option<AnswerSender>,
    ) -> OpenCallGuard {
        let call = Arc::new(OpenCall {
            id: OnceLock::new(),
            thread: user.as_ref().map(|it| it.thread),
            answer,
            acts,
            running_acts: RunningActs::new(),
            questions: self.elicitations.add_call(user),
            asking: tokio::sync::Mutex::default(),
        });
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        table.calls.insert(number, call.clone());
        drop(table);
        let calls = self.clone();
        OpenCallGuard {
            calls,
            number,
            call,
        }
    }

    /// Whether a call has no result.
    pub(super) fn has_calls(&self) -> bool {
        !self.table().calls.is_empty()
    }

    /// Returns the call that these params name.
    pub(super) fn find_named(&self, params: &Value) -> Result<Arc<OpenCall>, CallLookupError> {
        match params.get(CALL_ID) {
            None | Some(Value::Null) => Err(CallLookupError::InvalidId),
            Some(_) => self.find(params),
        }
    }

    /// Whether at most one call has no result.
    pub(super) fn has_one_at_most(&self) -> bool {
        self.table().calls.len() <= 1
    }

    /// Returns the call that a host call with these params belongs to: the one that it names, or
    /// the newest if all calls without a response belong to one thread.
    pub(super) fn find(&self, params: &Value) -> Result<Arc<OpenCall>, CallLookupError> {
        let table = self.table();
        // After a restart of the process ids are used again, and the newest call is the right one.
        let mut calls = table.calls.values().rev();
        match params.get(CALL_ID) {
            None | Some(Value::Null) => {
                let newest = calls.next().ok_or(CallLookupError::NoCall)?;
                let is_same = |thread: Option<ThreadId>| thread == newest.thread;
                let is_only = calls.all(|it| is_same(it.thread))
                    && self.stopped.all_owners(|it| is_same(it.turn_thread()));
                match is_only {
                    true => Ok(newest.clone()),
                    false => Err(CallLookupError::SeveralThreads),
                }
            }
            Some(Value::String(id)) => {
                let named = calls.find(|it| it.id.get() == Some(id));
                named.cloned().ok_or_else(|| CallLookupError::unknown(id))
            }
            Some(_) => Err(CallLookupError::InvalidId),
        }
    }
}

impl OpenCall {
    /// Whether a turn of a thread made the call.
    pub(super) fn has_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// Begins an act, unless the call has ended.
    pub(super) fn begin_act(&self) -> Option<RunningAct> {
        self.running_acts.begin()
    }
}

/// An open call, as its caller holds it. Dropping it ends the call.
pub(super) struct OpenCallGuard {
    calls: Arc<OpenCalls>,
    number: u64,
    call: Arc<OpenCall>,
}

impl OpenCallGuard {
    /// Sets the id of the request. A call is sent once.
    pub(super) fn set_id(&self, id: &str) {
        let _ = self.call.id.set(id.to_owned());
    }

    /// Waits for this time. Time in which a question is open does not count.
    pub(super) async fn timeout(&self, limit: Duration) {
        self.call.questions.timeout(limit).await;
    }

    /// Ends the call, and waits until its acts have ended.
    pub(super) async fn end(self) {
        let acts = self.call.running_acts.clone();
        drop(self);
        acts.ended().await;
    }
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        self.calls.table().calls.remove(&self.number);
        self.call.running_acts.stop();
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::ports::{BoxFuture, QuestionSink};
    use raddle_core::{Ask, Resolution};
    use serde_json::json;

    use super::*;

    /// A user who is never asked.
    struct UnaskedUser;

    impl QuestionSink for UnaskedUser {
        fn ask(&self, _: Ask) -> BoxFuture<'static, Resolution> {
            panic!("the user is asked");
        }
    }

    #[test]
    fn a_host_call_belongs_to_the_call_that_it_names_or_to_the_newest_of_one_thread() {
        let calls = OpenCalls::new("org.example".to_owned());
        let (first, second) = (ThreadId::mint(), ThreadId::mint());
        let open = |id: &str, thread: Option<ThreadId>| {
            let user = thread.map(|thread| CallUser {
                thread,
                questions: Arc::new(UnaskedUser),
            });
            let guard = calls.add(user, None, None);
            guard.set_id(id);
            guard
        };
        let find = |params: Value| {
            let found = calls.find(&params);
            found.map(|it| (it.id.get().cloned().expect("an id"), it.thread))
        };
        let found = |id: &str, thread| Ok((id.to_owned(), thread));
        let named = |id: &str| json!({ "call_id": id });
        assert_eq!(find(json!({})), Err(CallLookupError::NoCall));
        let a = open("raddle-1", Some(first));
        let b = open("raddle-2", Some(first));
        assert_eq!(find(json!({})), found("raddle-2", Some(first)));
        assert_eq!(find(Value::Null), found("raddle-2", Some(first)));
        assert_eq!(find(named("raddle-1")), found("raddle-1", Some(first)));
        let c = open("raddle-3", Some(second));
        let unnamed = find(json!({ "call_id": null }));
        assert_eq!(unnamed, Err(CallLookupError::SeveralThreads));
        assert_eq!(find(named("raddle-1")), found("raddle-1", Some(first)));
        assert_eq!(find(named("raddle-3")), found("raddle-3", Some(second)));
        let unknown = CallLookupError::UnknownId("raddle-9".to_owned());
        assert_eq!(find(named("raddle-9")), Err(unknown));
        let excerpt = CallLookupError::UnknownId("x".repeat(EXCERPT_BYTES_MAX));
        assert_eq!(find(named(&"x".repeat(1 << 20))), Err(excerpt));
        let number = find(json!({ "call_id": 3 }));
        assert_eq!(number, Err(CallLookupError::InvalidId));
        drop((a, b));
        assert_eq!(find(json!({})), found("raddle-3", Some(second)));
        // A client's call has no thread, and is of another one than all others.
        let d = open("raddle-4", None);
        assert_eq!(find(json!({})), Err(CallLookupError::SeveralThreads));
        drop((c, d));
        // The process was started again while a call of the old one is about to end.
        let old = open("raddle-1", Some(first));
        let new = open("raddle-1", Some(second));
        assert_eq!(find(named("raddle-1")), found("raddle-1", Some(second)));
        drop((old, new));
        assert!(!calls.has_calls());
    }
}
