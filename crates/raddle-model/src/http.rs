//! One request to a vendor, and the stream of its answer.

mod endpoint;
mod pool;
mod proxy;
mod secrets;
mod tls;

pub(crate) use endpoint::escaped;
pub use endpoint::{Endpoint, EndpointError};
pub(crate) use secrets::Secrets;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Response};
use tokio::time::{Instant, timeout, timeout_at};

use self::pool::{ConnectError, HttpConn, HttpPool};
use self::proxy::Proxies;
use crate::io::{Dial, Tcp};
use crate::timeouts::CallDeadline;
use crate::{CallError, CallTimeouts, vendor};

/// How much of a refusal is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// How long the rest of a refusal is waited for, once its head is there.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of it is shown when it is not what a vendor says.
const EXCERPT_LETTERS_MAX: usize = 300;

/// How much an answer may have in all.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long an answer that has said everything may take to end, so that its connection can be kept.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Calls vendors, and keeps connections for the next calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ModelClient {
    pool: Arc<HttpPool>,
}

impl Default for ModelClient {
    fn default() -> Self {
        Self::new()
    }
}

impl ModelClient {
    /// Over TCP, through the proxy that the environment names.
    pub fn new() -> Self {
        let lines = HttpPool::new(Arc::new(Tcp), Proxies::of_environment());
        let pool = Arc::new(lines);
        Self { pool }
    }

    /// Over connections made in another way, and through nobody.
    pub fn with_dial(dial: Arc<dyn Dial>) -> Self {
        let pool = Arc::new(HttpPool::new(dial, Proxies::default()));
        Self { pool }
    }

    /// Posts a JSON body to the base itself, and gives the body of a good answer, as long as a refusal may be.
    pub async fn exchange(
        &self,
        endpoint: &Endpoint,
        body: Vec<u8>,
        limits: CallTimeouts,
    ) -> Result<Vec<u8>, CallError> {
        let request = OutgoingRequest::post(endpoint.base_path(), body);
        let (head, answer) = self.send(endpoint, request, limits).await?;
        match head.status().is_success() {
            true => Ok(answer.read_all(REFUSAL_BYTES_MAX).await),
            false => answer.expect_stream(&head).await.map(|_| Vec::new()),
        }
    }

    /// Gets what is at a path below the base, up to a bound.
    pub(crate) async fn get(
        &self,
        endpoint: &Endpoint,
        path: &str,
        bytes_max: usize,
        limits: CallTimeouts,
    ) -> Result<Vec<u8>, CallError> {
        let request = OutgoingRequest {
            method: Method::GET,
            path,
            body: Vec::new(),
        };
        let (head, answer) = self.send(endpoint, request, limits).await?;
        match head.status().is_success() {
            true => Ok(answer.read_all(bytes_max).await),
            false => answer.expect_stream(&head).await.map(|_| Vec::new()),
        }
    }

    /// Posts a JSON body to a path below the base, and answers with the head of a good answer.
    pub(crate) async fn post(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Vec<u8>,
        limits: CallTimeouts,
    ) -> Result<HttpAnswer, CallError> {
        let request = OutgoingRequest::post(path, body);
        let (head, answer) = self.send(endpoint, request, limits).await?;
        answer.expect_stream(&head).await
    }

    async fn send(
        &self,
        endpoint: &Endpoint,
        asking: OutgoingRequest<'_>,
        limits: CallTimeouts,
    ) -> Result<(Response<()>, HttpAnswer), CallError> {
        let OutgoingRequest { method, path, body } = asking;
        let unreachable = |what: String| CallError::Connect {
            address: endpoint.address(path),
            what,
        };
        let mut patience = CallDeadline::new(limits);
        let body = Full::new(Bytes::from(body));
        let mut kept = self.pool.take_idle(&endpoint.remote);
        loop {
            let request = endpoint.request(&method, path, body.clone());
            let request = request.map_err(unreachable)?;
            let mut line = match kept.take() {
                Some(line) => line,
                None => {
                    let made = self
                        .pool
                        .connect_new(&endpoint.remote, limits.connect)
                        .await;
                    made.map_err(|error| match error {
                        ConnectError::Unreachable(what) => unreachable(what),
                        ConnectError::Untrusted(what) => CallError::Untrusted {
                            address: endpoint.address(path),
                            what,
                        },
                    })?
                }
            };
            let response = match patience.wait(line.send(request)).await? {
                Ok(response) => response,
                // Vendors close connections that are idle, and we may learn of it only now. What the vendor
                // may have heard is not said again here: that is a new attempt, and counts.
                Err(error) if line.is_used && error.message().is_some() => continue,
                Err(error) => return Err(unreachable(with_cause(error.error()))),
            };
            patience.renew();
            let (head, body) = response.into_parts();
            let answer = HttpAnswer {
                conn: line,
                body,
                pool: self.pool.clone(),
                bytes_left: ANSWER_BYTES_MAX,
                deadline: patience,
                secrets: endpoint.secrets.clone(),
            };
            return Ok((Response::from_parts(head, ()), answer));
        }
    }
}

/// What is asked of which path.
struct OutgoingRequest<'a> {
    method: Method,
    path: &'a str,
    body: Vec<u8>,
}

impl<'a> OutgoingRequest<'a> {
    fn post(path: &'a str, body: Vec<u8>) -> Self {
        Self {
            method: Method::POST,
            path,
            body,
        }
    }
}

/// An answer on its way. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    conn: HttpConn,
    body: Incoming,
    pool: Arc<HttpPool>,
    bytes_left: usize,
    deadline: CallDeadline,
    pub(crate) secrets: Arc<Secrets>,
}

impl HttpAnswer {
    /// Looks whether an answer is a stream of events; if it is not, says what it is.
    async fn expect_stream(self, head: &Response<()>) -> Result<Self, CallError> {
        let kind = head.headers().get(CONTENT_TYPE);
        let kind = kind.map(|it| String::from_utf8_lossy(it.as_bytes()).to_lowercase());
        let is_stream = kind
            .as_ref()
            .is_none_or(|it| it.starts_with("text/event-stream"));
        if head.status().is_success() && is_stream {
            return Ok(self);
        }
        let secrets = self.secrets.clone();
        let body = self.read_all(REFUSAL_BYTES_MAX).await;
        let mut body = String::from_utf8_lossy(&body).into_owned();
        secrets.redact_body(&mut body);
        if !head.status().is_success() {
            let status = head.status().as_u16();
            let error = vendor::refused(status, head.headers(), &body, SystemTime::now());
            return Err(error);
        }
        let kind = kind.unwrap_or_default();
        let excerpt: String = body.trim().chars().take(EXCERPT_LETTERS_MAX).collect();
        Err(CallError::Malformed(format!(
            "it is `{kind}` and no stream of events; is base_url right? It begins: {excerpt}"
        )))
    }

    /// What there is of an answer that is no stream, up to a bound.
    async fn read_all(mut self, bytes_max: usize) -> Vec<u8> {
        let mut gathered = Vec::new();
        let enough = Instant::now() + REFUSAL_TIMEOUT;
        while gathered.len() < bytes_max {
            match timeout_at(enough, self.next_chunk()).await {
                Ok(Ok(Some(bytes))) => gathered.extend_from_slice(&bytes),
                Ok(Ok(None)) => {
                    self.end();
                    break;
                }
                Ok(Err(_)) | Err(_) => break,
            }
        }
        gathered.truncate(bytes_max);
        gathered
    }

    /// Something came that means something.
    pub(crate) fn renew_deadline(&mut self) {
        self.deadline.renew();
    }

    /// More of it; nothing when it has ended.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            let frame = self.conn.drive(self.body.frame());
            let Some(frame) = self.deadline.wait(frame).await? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| CallError::BrokeOff(with_cause(&error)))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            let left = self.bytes_left.checked_sub(bytes.len());
            self.bytes_left = left.ok_or_else(|| {
                CallError::Malformed(format!("it is longer than {ANSWER_BYTES_MAX} bytes"))
            })?;
            return Ok(Some(bytes));
        }
    }

    /// Everything has been said: keeps the connection if the answer ends now, or soon.
    pub(crate) fn end(mut self) {
        let mut context = Context::from_waker(Waker::noop());
        if self.poll_end(&mut context).is_ready() {
            return self.settle();
        }
        tokio::spawn(async move {
            let ending = std::future::poll_fn(|context| self.poll_end(context));
            if timeout(END_TIMEOUT, ending).await.is_ok() {
                self.settle();
            }
        });
    }

    fn settle(self) {
        // One that broke is not free, and is not kept.
        self.pool.keep(self.conn);
    }

    /// Whether the answer has ended. What else comes is not looked at.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.conn.advance(context);
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// An error and what is behind it, which is where the reason stands.
fn with_cause(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
