//! Calls of MCP tools: sending one, waiting for its result, and cancelling it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raddle_core::ports::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult,
    JsonObject, ProgressNotificationParam, ProgressToken, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::watch;
use tokio::time::{self, Instant, sleep_until};

use super::elicitation::CallElicitations;
use super::plain_text::plain_text;

/// Shortest time between two progress messages of a call. Of those in between, the last is kept.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Time for the notification that a call is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest progress message.
const PROGRESS_BYTES_MAX: usize = 1 << 10;

/// Reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The user stopped it.
    #[error("it was stopped")]
    Stopped,
    /// It took longer than the configuration allows.
    #[error(
        "it did not answer within {} s (`tool_timeout_sec` of the server sets this limit)",
        .0.as_secs()
    )]
    TimedOut(Duration),
    /// It needs input before it can continue.
    #[error("it requires input")]
    InputRequired(Box<InputRequiredResult>),
    /// It needs input other than answers of the user.
    #[error("it asks for input that is not supported: only questions to the user are")]
    UnsupportedInput,
    /// It needs input again and again.
    #[error("it asked for input {0} times, and has no result")]
    TooManyRounds(u32),
    /// The server refused it, or the connection failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Calls of one server that have no result yet, by the token of their progress.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Mutex<HashMap<ProgressToken, watch::Sender<CallProgress>>>);

/// Last progress message of a call.
#[derive(Debug)]
struct CallProgress {
    /// Position that the server reports.
    position: f64,
    text: String,
}

impl OpenCalls {
    /// Passes a progress message to its call. A message with an unknown token is dropped.
    pub(crate) fn report(&self, params: &ProgressNotificationParam) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(call) = calls.get(&params.progress_token) else {
            return;
        };
        let position = params.progress;
        let text = match (&params.message, params.total) {
            (Some(message), _) => plain_text(message, PROGRESS_BYTES_MAX),
            (None, Some(total)) => format!("{position} of {total}"),
            (None, None) => position.to_string(),
        };
        // The messages of a connection are handled side by side: an older one can come later.
        call.send_if_modified(|last| {
            let is_newer = position >= last.position && !text.is_empty();
            if is_newer {
                *last = CallProgress { position, text };
            }
            is_newer
        });
    }

    fn open(self: &Arc<Self>, token: ProgressToken) -> (OpenCall, watch::Receiver<CallProgress>) {
        let (sender, receiver) = watch::channel(CallProgress {
            position: f64::NEG_INFINITY,
            text: String::new(),
        });
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), sender.clone());
        let call = OpenCall {
            calls: self.clone(),
            token,
            sender,
        };
        (call, receiver)
    }
}

/// A call without a result. Dropping it removes it from the open calls.
struct OpenCall {
    calls: Arc<OpenCalls>,
    token: ProgressToken,
    sender: watch::Sender<CallProgress>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Tokens start again with each connection, so a newer call can have the same one.
        let is_this = |it: &watch::Sender<_>| it.same_channel(&self.sender);
        if calls.get(&self.token).is_some_and(is_this) {
            calls.remove(&self.token);
        }
    }
}

/// A tool call to send.
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Option<JsonObject>,
    pub(crate) timeout: Duration,
    /// Completes once the call must stop.
    pub(crate) stopped: BoxFuture<'static, ()>,
    /// Questions of the call to the user.
    pub(crate) elicitations: CallElicitations,
}

/// Event of a call that has no result yet.
enum Event {
    Response(Box<Result<ServerResult, ServiceError>>),
    Progress(String),
    TimedOut,
    Stopped,
}

impl Call {
    /// Sends the call once and waits for its result. A call that is stopped or takes too long is
    /// cancelled on the server.
    pub(crate) async fn send_once(
        &mut self,
        params: CallToolRequestParams,
        peer: &Peer<RoleClient>,
        calls: &Arc<OpenCalls>,
        report: &mut impl FnMut(String),
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<CallToolResult, CallError> {
        let (mut stopped, timeout) = (&mut self.stopped, self.timeout);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let mut handle = peer.send_request_with_option(request, options).await?;
        let (_open, mut progress) = calls.open(handle.progress_token.clone());
        let mut next_report = Instant::now();
        loop {
            let event = tokio::select! {
                biased;
                response = &mut handle.rx => {
                    let response = response.unwrap_or(Err(ServiceError::TransportClosed));
                    Event::Response(Box::new(response))
                }
                () = &mut stopped => Event::Stopped,
                () = &mut deadline => Event::TimedOut,
                Some(text) = next_message(&mut progress, next_report) => Event::Progress(text),
            };
            let (reason, error) = match event {
                Event::Progress(text) => {
                    report(text);
                    next_report = Instant::now() + PROGRESS_INTERVAL;
                    continue;
                }
                Event::Response(response) => {
                    if progress.has_changed().unwrap_or(false) {
                        report(progress.borrow_and_update().text.clone());
                    }
                    return result_of((*response)?);
                }
                Event::Stopped => ("the user stopped it", CallError::Stopped),
                Event::TimedOut => ("it took too long", CallError::TimedOut(timeout)),
            };
            // The cancellation may wait for a server that does not read.
            let cancelled = handle.cancel(Some(reason.to_owned()));
            if let Ok(Err(error)) = time::timeout(CANCEL_TIMEOUT, cancelled).await {
                tracing::debug!(%error, "a call of an MCP tool could not be cancelled");
            }
            return Err(error);
        }
    }
}

/// Waits for a progress message, at least until this time.
async fn next_message(
    progress: &mut watch::Receiver<CallProgress>,
    not_before: Instant,
) -> Option<String> {
    sleep_until(not_before).await;
    progress.changed().await.ok()?;
    Some(progress.borrow_and_update().text.clone())
}

fn result_of(response: ServerResult) -> Result<CallToolResult, CallError> {
    match response {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(it) => Err(CallError::InputRequired(Box::new(it))),
        _ => Err(ServiceError::UnexpectedResponse.into()),
    }
}

#[cfg(test)]
mod tests;
