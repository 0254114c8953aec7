//! HTTP routes of the server.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, LOCATION, ORIGIN};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};

use super::access::{self, AccessGuard};
use super::answer_body::{AnswerBody, BodyEnd, Disconnect};
use super::call_input::{CallInput, ScriptProgress};
use super::fault::ScriptedFault;
use super::play::{self, AnswerMeta, AnswerPlayer};
use super::script::{ModelScript, ScriptError, ScriptStep};
use super::{CallCounts, CountsSender};
use crate::io::Io;
use crate::{WireFormat, oauth};

const CALL_BYTES_MAX: usize = 64 << 20;

/// Calls that are remembered, and bytes of them.
const CALLS_MAX: usize = 256;
const CALLS_BYTES_MAX: usize = 64 << 20;

/// Answers that can be released in advance.
const RELEASED_MAX: usize = 1 << 20;

/// The headers whose values are shown.
const HEADERS_SHOWN: [&str; 6] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-request-id",
];

/// A call that the server received, for tests to inspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Its headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body as received.
    pub body: Bytes,
}

/// State that all connections of a server share.
#[derive(Debug)]
pub(super) struct ScriptedState {
    /// Whether requests may name any host.
    any_host: bool,
    /// Access rules; `None` answers every call.
    guard: Option<AccessGuard>,
    progress: Mutex<ScriptProgress>,
    calls: Mutex<VecDeque<RecordedCall>>,
    released: Semaphore,
    counts: CountsSender,
}

impl ScriptedState {
    pub(super) fn new(script: ModelScript, any_host: bool) -> Self {
        Self {
            any_host,
            guard: script.access.clone().map(AccessGuard::new),
            progress: Mutex::new(ScriptProgress::new(script)),
            calls: Mutex::default(),
            released: Semaphore::new(0),
            counts: CountsSender::default(),
        }
    }

    pub(super) fn counts(&self) -> watch::Receiver<CallCounts> {
        self.counts.subscribe()
    }

    pub(super) fn release(&self, answers: usize) {
        let capacity = RELEASED_MAX.saturating_sub(self.released.available_permits());
        self.released.add_permits(answers.min(capacity));
    }

    pub(super) fn calls(&self) -> Vec<RecordedCall> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().cloned().collect()
    }

    fn remember(&self, call: RecordedCall) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push_back(call);
        let mut bytes: usize = calls.iter().map(|it| it.body.len()).sum();
        while calls.len() > CALLS_MAX || bytes > CALLS_BYTES_MAX && calls.len() > 1 {
            bytes -= calls.pop_front().map_or(0, |it| it.body.len());
        }
    }

    /// Waits to be released.
    pub(super) async fn hold(&self) {
        let _held = CountGuard::new(&self.counts, |counts| &mut counts.held);
        // The semaphore is never closed.
        if let Ok(permit) = self.released.acquire().await {
            permit.forget();
        }
    }
}

/// Increments a counter for as long as it lives.
struct CountGuard<'a> {
    counts: &'a CountsSender,
    counter: fn(&mut CallCounts) -> &mut u64,
}

impl<'a> CountGuard<'a> {
    fn new(counts: &'a CountsSender, counter: fn(&mut CallCounts) -> &mut u64) -> Self {
        counts.send_modify(|it| *counter(it) += 1);
        Self { counts, counter }
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.counts.send_modify(|it| *(self.counter)(it) -= 1);
    }
}

pub(super) async fn serve(io: Box<dyn Io>, state: Arc<ScriptedState>) {
    state.counts.send_modify(|it| it.connections += 1);
    let _open = CountGuard::new(&state.counts, |counts| &mut counts.open);
    let resets = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (state, resets) = (state.clone(), resets.clone());
        Box::pin(async move { answer(request, state, resets).await })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(io), service);
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let io = connection.into_parts().io.into_inner();
    if resets.load(Ordering::Relaxed) {
        io.reset();
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<ScriptedState>,
    resets: Arc<AtomicBool>,
) -> Result<Response<AnswerBody>, Disconnect> {
    // A page in a browser has no business here, least of all with the requests of others.
    if request.headers().contains_key(ORIGIN) {
        return Ok(refusal(403, "requests from web pages are not answered"));
    }
    // This includes pages of a host name that resolves to this machine.
    if !state.any_host && !names_loopback(request.headers()) {
        return Ok(refusal(403, "write 127.0.0.1 or localhost as the host"));
    }
    let path = request.uri().path().trim_end_matches('/').to_owned();
    if request.method() == Method::POST
        && let Some(wire) = wire_of(&path)
    {
        return call(wire, request, state, resets).await;
    }
    if let Some(guard) = &state.guard
        && path.starts_with("/oauth/")
    {
        return Ok(answer_token_request(guard, &path, request).await);
    }
    match (request.method(), path.as_str()) {
        (&Method::GET, "/v1/models") => Ok(json_response(
            200,
            &json!({ "object": "list", "data": [{ "id": "mock", "object": "model", "owned_by": "raddle" }] }),
        )),
        (&Method::GET, "/requests") => Ok(json_response(200, &requests(&state))),
        (&Method::POST, "/release") => {
            let query = request.uri().query().unwrap_or("n=1");
            match query.strip_prefix("n=").and_then(|it| it.parse().ok()) {
                Some(answers) => {
                    state.release(answers);
                    Ok(json_response(200, &json!({ "released": answers })))
                }
                None => Ok(refusal(400, "write /release, or /release?n=NUMBER")),
            }
        }
        _ => Ok(refusal(
            404,
            "there are POST /v1/responses, /v1/chat/completions, /v1/messages and /v1/models/NAME:streamGenerateContent, \
             GET /v1/models, GET /requests and POST /release",
        )),
    }
}

/// Answers a request for tokens, with a query or a form.
async fn answer_token_request(
    guard: &AccessGuard,
    path: &str,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let mut parameters = request.uri().query().unwrap_or_default().to_owned();
    if request.method() == Method::POST {
        let body = Limited::new(request.into_body(), CALL_BYTES_MAX).collect();
        let Ok(body) = body.await else {
            return refusal(413, "the form is cut off or too long");
        };
        parameters = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    }
    match guard.answer(path, &oauth::parse_query(&parameters)) {
        access::TokenReply::Whole(status, body) => json_response(status, &body),
        access::TokenReply::Redirect(address) => {
            let mut response = json_response(302, &json!({}));
            if let Ok(address) = address.parse() {
                response.headers_mut().insert(LOCATION, address);
            }
            response
        }
    }
}

/// Returns the wire of a path.
fn wire_of(path: &str) -> Option<WireFormat> {
    match path {
        "/v1/responses" => Some(WireFormat::Responses),
        "/v1/chat/completions" => Some(WireFormat::Chat),
        "/v1/messages" => Some(WireFormat::Messages),
        path if path.starts_with("/v1/models/") && path.ends_with(":streamGenerateContent") => {
            Some(WireFormat::Gemini)
        }
        _ => None,
    }
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    let authority = host.and_then(|it| it.parse::<Authority>().ok());
    authority.is_some_and(|it| {
        let host = it.host().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok()
    })
}

/// Returns the received calls, with their headers redacted.
fn requests(state: &ScriptedState) -> Value {
    let calls: Vec<Value> = state.calls().iter().map(redacted_call).collect();
    let counts = *state.counts().borrow();
    json!({
        "calls": counts.calls,
        "connections": counts.connections,
        "open": counts.open,
        "held": counts.held,
        "tokens": state.guard.as_ref().map_or(0, AccessGuard::issue_count),
        "requests": calls,
    })
}

fn redacted_call(call: &RecordedCall) -> Value {
    let headers = call.headers.iter().map(|(name, value)| {
        // A user may have sent a real key by mistake, under whatever name.
        let is_shown = HEADERS_SHOWN.contains(&name.as_str());
        (
            name.clone(),
            Value::from(if is_shown { value } else { "…" }),
        )
    });
    let text = || String::from_utf8_lossy(&call.body).into_owned();
    let body = serde_json::from_slice(&call.body).unwrap_or_else(|_| Value::String(text()));
    json!({ "headers": Value::Object(headers.collect()), "body": body })
}

async fn call(
    wire: WireFormat,
    request: Request<Incoming>,
    state: Arc<ScriptedState>,
    resets: Arc<AtomicBool>,
) -> Result<Response<AnswerBody>, Disconnect> {
    let guard = state.guard.as_ref();
    let is_admitted = guard.is_none_or(|it| it.admits(request.headers()));
    let headers = request.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let headers = headers.collect();
    let body = Limited::new(request.into_body(), CALL_BYTES_MAX).collect();
    let Ok(body) = body.await else {
        return Ok(refusal(413, "the call is cut off or too long"));
    };
    let body = body.to_bytes();
    let mut number = 0;
    state.counts.send_modify(|it| {
        it.calls += 1;
        number = it.calls;
    });
    let input = serde_json::from_slice(&body).map(|body: Value| CallInput::read(wire, &body));
    let call_bytes = body.len();
    state.remember(RecordedCall { headers, body });
    if !is_admitted {
        return Ok(refusal(401, "the key is not one of those in the script"));
    }
    let input = match input {
        Ok(input) if input.is_streamed => input,
        Ok(_) => {
            return Ok(refusal(
                400,
                "only calls with `\"stream\": true` are answered",
            ));
        }
        Err(error) => return Ok(refusal(400, &format!("the call is not JSON: {error}"))),
    };
    let steps = {
        let mut progress = state
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        progress.steps(&input)
    };
    let steps = match steps {
        Ok(steps) => steps,
        Err(ScriptError(message)) => return Ok(refusal(400, &message)),
    };
    if let Some(ScriptStep::Fault { fault, retry_after }) = steps.first()
        && let Some(answer) = replacement_response(wire, *fault, retry_after.as_deref()).await?
    {
        return Ok(answer);
    }
    let is_reset = |step: &ScriptStep| {
        matches!(
            step,
            ScriptStep::Fault {
                fault: ScriptedFault::Reset,
                ..
            }
        )
    };
    resets.store(steps.iter().any(is_reset), Ordering::Relaxed);
    let (sender, frames) = mpsc::channel(1);
    let model = input.model;
    let play = AnswerPlayer {
        state,
        call_bytes,
        frames: sender,
        writer: play::writer_for(wire, AnswerMeta::new(number, model)),
        buffer: Vec::new(),
        output_bytes: 0,
    };
    let body = AnswerBody::Played {
        play: Some(Box::pin(play.run(steps))),
        frames,
        ending: BodyEnd::Complete,
    };
    Ok(response_of_type(200, "text/event-stream", body))
}

/// Returns the response of a fault that replaces an answer; `None` if it interrupts one.
async fn replacement_response(
    wire: WireFormat,
    fault: ScriptedFault,
    retry_after: Option<&str>,
) -> Result<Option<Response<AnswerBody>>, Disconnect> {
    if let Some(reply) = fault.reply() {
        let mut response = json_response(reply.status, &reply.body(wire));
        let wait = retry_after.and_then(|it| it.parse().ok());
        if let Some(wait) = wait {
            response.headers_mut().insert("retry-after", wait);
        }
        return Ok(Some(response));
    }
    let text = |text: &'static str| AnswerBody::Whole(Full::from(text));
    match fault {
        ScriptedFault::ContentType => Ok(Some(response_of_type(
            200,
            "text/html",
            text("<html>Sign in</html>"),
        ))),
        ScriptedFault::Empty => Ok(Some(response_of_type(200, "text/event-stream", text("")))),
        ScriptedFault::Mute => std::future::pending().await,
        ScriptedFault::HangUp => Err(Disconnect),
        _ => Ok(None),
    }
}

fn refusal(status: u16, message: &str) -> Response<AnswerBody> {
    let error = json!({ "message": message, "type": "mock", "code": null });
    json_response(status, &json!({ "error": error }))
}

fn json_response(status: u16, body: &Value) -> Response<AnswerBody> {
    let body = AnswerBody::Whole(Full::from(body.to_string()));
    response_of_type(status, "application/json", body)
}

fn response_of_type(status: u16, kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
