//! Questions of MCP servers to the user. Each belongs to a call of a tool, and ends with it.

mod question;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_core::ports::QuestionSink;
use raddle_core::{Ask, AskElicitation, PluginPermission, RequestAnswer, Resolution, ThreadId};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputResponses,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use self::question::QuestionError;
pub(crate) use self::question::question;
use super::call::CallError;

/// Limit: questions of one MCP call that are open at a time; beyond it, they are declined.
const OPEN_MAX: usize = 4;

/// Limit: questions of one MCP call; beyond it, they are declined.
const ASKED_MAX: usize = 32;

/// The calls of one server that have no result, and their questions.
pub(crate) struct Elicitations {
    server: String,
    uses: Mutex<OpenUses>,
    next: AtomicU64,
    /// Number of questions that were declined without a request to the user.
    declined: AtomicU64,
}

/// Uses of a server that have no result.
#[derive(Default)]
struct OpenUses {
    calls: BTreeMap<u64, Arc<CallQuestions>>,
    /// Number of reads, which are no calls of tools.
    reads: usize,
}

impl OpenUses {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.reads == 0
    }
}

/// User behind a call.
pub(crate) struct CallUser {
    pub(crate) thread: ThreadId,
    pub(crate) questions: Arc<dyn QuestionSink>,
}

/// Reason why a question is declined without a request to the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeclineReason {
    #[error("no call of a tool is open")]
    NoCall,
    #[error("calls of several threads are open, so it belongs to none of them for certain")]
    SeveralThreads,
    #[error("a call is open that no turn made")]
    NoUser,
    #[error("the call has {OPEN_MAX} open questions")]
    TooManyOpen,
    #[error("the call asked {ASKED_MAX} questions")]
    TooMany,
    #[error(transparent)]
    Question(#[from] QuestionError),
}

impl Elicitations {
    pub(crate) fn new(server: String) -> Arc<Self> {
        Arc::new(Self {
            server,
            uses: Mutex::default(),
            next: AtomicU64::new(0),
            declined: AtomicU64::new(0),
        })
    }

    fn uses(&self) -> MutexGuard<'_, OpenUses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Without a user its questions are declined.
    pub(crate) fn add_call(self: &Arc<Self>, user: Option<CallUser>) -> CallElicitations {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let call = Arc::new(CallQuestions {
            user,
            asked: AtomicUsize::new(0),
            open: watch::Sender::new(0),
        });
        self.uses().calls.insert(number, call.clone());
        let server = self.clone();
        CallElicitations {
            entry: Arc::new(CallEntry { server, number }),
            call,
        }
    }

    /// Adds a read, such as that of a resource. It has no questions.
    pub(crate) fn add_read(self: &Arc<Self>) -> OpenRead {
        self.uses().reads += 1;
        OpenRead(self.clone())
    }

    /// Whether a call or a read has no result.
    pub(crate) fn has_calls(&self) -> bool {
        !self.uses().is_empty()
    }

    /// Runs something unless a call or a read has no result. None is added meanwhile. Returns
    /// whether it ran.
    pub(crate) fn if_unused(&self, run: impl FnOnce()) -> bool {
        let uses = self.uses();
        let is_unused = uses.is_empty();
        if is_unused {
            run();
        }
        is_unused
    }

    /// Asks the user a question that arrived as a request of the server. Revisions of the protocol
    /// with such requests do not name their call.
    pub(crate) async fn ask(&self, params: ElicitRequestParams) -> ElicitResult {
        let result = self.try_ask(params).await;
        result.unwrap_or_else(|reason| self.decline(&reason))
    }

    async fn try_ask(&self, params: ElicitRequestParams) -> Result<ElicitResult, DeclineReason> {
        let call = self.only_call()?;
        self.try_ask_for(&call, params).await
    }

    /// Returns the newest call, if all open calls belong to one thread.
    fn only_call(&self) -> Result<Arc<CallQuestions>, DeclineReason> {
        let uses = self.uses();
        let calls = &uses.calls;
        let newest = calls.values().next_back().ok_or(DeclineReason::NoCall)?;
        let mut threads = Vec::new();
        for call in calls.values() {
            let user = call.user.as_ref().ok_or(DeclineReason::NoUser)?;
            threads.push(user.thread);
        }
        threads.dedup();
        match threads.len() {
            1 => Ok(newest.clone()),
            _ => Err(DeclineReason::SeveralThreads),
        }
    }

    async fn ask_for(&self, call: &CallQuestions, params: ElicitRequestParams) -> ElicitResult {
        let result = self.try_ask_for(call, params).await;
        result.unwrap_or_else(|reason| self.decline(&reason))
    }

    async fn try_ask_for(
        &self,
        call: &CallQuestions,
        params: ElicitRequestParams,
    ) -> Result<ElicitResult, DeclineReason> {
        let is_form = matches!(params, ElicitRequestParams::FormElicitationParams { .. });
        let ask = AskElicitation {
            server: self.server.clone(),
            body: question(&params)?,
            permission: None,
        };
        let resolution = call.ask(ask).await?;
        Ok(result_of(resolution, is_form))
    }

    fn decline(&self, reason: &DeclineReason) -> ElicitResult {
        let count = self.declined.fetch_add(1, Ordering::Relaxed) + 1;
        // A server that floods with questions does not flood the log.
        if count.is_power_of_two() {
            let server = &*self.server;
            tracing::info!(server, %reason, count, "a question of an MCP server is declined");
        }
        ElicitResult::new(ElicitationAction::Decline)
    }
}

/// A read without a result. Dropping it ends the read.
pub(crate) struct OpenRead(Arc<Elicitations>);

impl Drop for OpenRead {
    fn drop(&mut self) {
        self.0.uses().reads -= 1;
    }
}

/// The questions of a call. Dropping the last clone removes the call.
#[derive(Clone)]
pub(crate) struct CallElicitations {
    entry: Arc<CallEntry>,
    call: Arc<CallQuestions>,
}

/// Entry of a call among the calls of its server. Dropping it removes the call.
struct CallEntry {
    server: Arc<Elicitations>,
    number: u64,
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        self.server.uses().calls.remove(&self.number);
    }
}

impl CallElicitations {
    /// Asks the user for the input that a result of the call requires, one question after the
    /// other.
    pub(crate) async fn answer(&self, inputs: InputRequests) -> Result<InputResponses, CallError> {
        let mut responses = InputResponses::new();
        for (key, input) in inputs {
            let InputRequest::Elicitation(request) = input else {
                return Err(CallError::UnsupportedInput);
            };
            let result = self.entry.server.ask_for(&self.call, request.params).await;
            let result = serde_json::to_value(result).map_err(|_| CallError::UnsupportedInput)?;
            responses.insert(key, result);
        }
        Ok(responses)
    }

    /// Asks the user to visit pages. Returns whether the user accepts all of them.
    pub(crate) async fn visit(&self, pages: Vec<ElicitRequestParams>) -> bool {
        for page in pages {
            let result = self.entry.server.ask_for(&self.call, page).await;
            if result.action != ElicitationAction::Accept {
                return false;
            }
        }
        true
    }

    /// Asks the user to accept something, such as the permission of a plugin. Returns the principal
    /// that accepted it.
    pub(crate) async fn accepted_by(
        &self,
        params: &ElicitRequestParams,
        permission: Option<PluginPermission>,
    ) -> Result<Option<String>, DeclineReason> {
        let body = question(params)?;
        let server = self.entry.server.server.clone();
        let ask = AskElicitation {
            server,
            body,
            permission,
        };
        let resolution = self.call.ask(ask).await?;
        Ok(resolution.accepted_by().map(str::to_owned))
    }

    /// Waits for this time. Time in which a question is open does not count.
    pub(crate) async fn timeout(&self, mut remaining: Duration) {
        let mut open = self.call.open.subscribe();
        loop {
            let _ = open.wait_for(|it| *it == 0).await;
            let began = Instant::now();
            tokio::select! {
                biased;
                _ = open.wait_for(|it| *it > 0) => {
                    remaining = remaining.saturating_sub(began.elapsed());
                }
                () = sleep(remaining) => return,
            }
        }
    }
}

/// The questions of one call.
struct CallQuestions {
    /// The thread that made the call; `None` if a client made it outside of a turn.
    user: Option<CallUser>,
    /// Number of questions so far.
    asked: AtomicUsize,
    /// Number of open questions.
    open: watch::Sender<usize>,
}

impl CallQuestions {
    async fn ask(&self, ask: AskElicitation) -> Result<Resolution, DeclineReason> {
        let user = self.user.as_ref().ok_or(DeclineReason::NoUser)?;
        let _open = self.reserve().ok_or(DeclineReason::TooManyOpen)?;
        if self.asked.fetch_add(1, Ordering::Relaxed) >= ASKED_MAX {
            return Err(DeclineReason::TooMany);
        }
        Ok(user.questions.ask(Ask::Elicitation(ask)).await)
    }

    /// Reserves one of the open questions.
    fn reserve(&self) -> Option<OpenElicitation<'_>> {
        let is_reserved = self.open.send_if_modified(|open| {
            let has_capacity = *open < OPEN_MAX;
            *open += usize::from(has_capacity);
            has_capacity
        });
        is_reserved.then(|| OpenElicitation(&self.open))
    }
}

/// An open question. Dropping it makes room for another one.
struct OpenElicitation<'a>(&'a watch::Sender<usize>);

impl Drop for OpenElicitation<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Converts the end of a request to the result that the server gets. Without an answer the result
/// is `cancel`: the user did not decide.
fn result_of(resolution: Resolution, is_form: bool) -> ElicitResult {
    let Resolution::Answered { answer, .. } = resolution else {
        return ElicitResult::new(ElicitationAction::Cancel);
    };
    let RequestAnswer::Elicitation { body } = *answer else {
        return ElicitResult::new(ElicitationAction::Decline);
    };
    let result = serde_json::from_value(body);
    let mut result: ElicitResult =
        result.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Decline));
    if !is_form || result.action != ElicitationAction::Accept {
        result.content = None;
    }
    result
}

#[cfg(test)]
mod tests;
