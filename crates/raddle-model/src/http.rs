//! Sends one request to a vendor, and streams its answer.

mod endpoint;
mod pool;
mod proxy;
mod raw;
mod secrets;
mod tls;

pub(crate) use endpoint::escaped;
pub use endpoint::{Endpoint, EndpointError, redacted};
pub use raw::ResponseBody;
pub(crate) use secrets::Secrets;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response};
use tokio::time::{Instant, timeout, timeout_at};

use self::pool::{ConnectError, HttpConn, HttpPool, RemoteHost};
use self::proxy::Proxies;
use crate::io::{Dial, Tcp};
use crate::timeouts::CallDeadline;
use crate::{CallError, CallTimeouts, vendor_error};

/// Limit: a webhook's response, or the error body of a model; beyond it, a webhook's response
/// counts as none; the rest of an error is dropped.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Timeout for the rest of an error response after its head.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Characters shown of a response that is not a vendor's error.
const EXCERPT_CHARS_MAX: usize = 300;

/// Limit: a model's whole response; beyond it, the call fails.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Timeout for the end of a complete answer, so that its connection can be kept.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Calls vendors, and keeps connections for later calls. Cheap to clone.
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
    /// Builds a client over TCP, through the proxy that the environment names.
    pub fn new() -> Self {
        let http_pool = HttpPool::new(Arc::new(Tcp), Proxies::of_environment());
        let pool = Arc::new(http_pool);
        Self { pool }
    }

    /// Builds a client over other connections, without a proxy.
    pub fn with_dial(dial: Arc<dyn Dial>) -> Self {
        let pool = Arc::new(HttpPool::new(dial, Proxies::default()));
        Self { pool }
    }

    /// Posts a JSON body to the base itself, and returns the body of a successful response, up to
    /// the limit of an error response.
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

    /// Gets the resource at a path below the base, up to a limit.
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

    /// Posts a JSON body to a path below the base, and returns the stream of a successful response.
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
        outgoing: OutgoingRequest<'_>,
        limits: CallTimeouts,
    ) -> Result<(Response<()>, HttpAnswer), CallError> {
        let OutgoingRequest { method, path, body } = outgoing;
        let target = HttpTarget {
            remote: &endpoint.remote,
            address: endpoint.address(path),
            secrets: &endpoint.secrets,
        };
        let request = endpoint.request(&method, path, Full::new(Bytes::from(body)));
        let request = request.map_err(|error| target.unreachable(error.to_string()))?;
        self.transfer(target, request, limits).await
    }

    /// Sends a request over an idle connection or a new one, and waits for the head of its answer.
    async fn transfer(
        &self,
        target: HttpTarget<'_>,
        mut request: Request<Full<Bytes>>,
        limits: CallTimeouts,
    ) -> Result<(Response<()>, HttpAnswer), CallError> {
        let mut deadline = CallDeadline::new(limits);
        let mut idle_conn = self.pool.take_idle(target.remote);
        loop {
            let mut conn = match idle_conn.take() {
                Some(conn) => conn,
                None => {
                    let connected = self.pool.connect_new(target.remote, limits.connect).await;
                    connected.map_err(|error| match error {
                        ConnectError::Unreachable(what) => target.unreachable(what),
                        ConnectError::Untrusted(what) => CallError::Untrusted {
                            address: target.address.clone(),
                            what,
                        },
                    })?
                }
            };
            let response = match deadline.wait(conn.send(request)).await? {
                Ok(response) => response,
                Err(mut error) => match error.take_message() {
                    // Vendors close idle connections, and the client may notice only now. A request
                    // that the vendor may have received is not sent again here: that is a new
                    // attempt, and counts.
                    Some(unsent) if conn.is_used => {
                        request = unsent;
                        continue;
                    }
                    _ => return Err(target.unreachable(with_cause(error.error()))),
                },
            };
            deadline.renew();
            let (head, body) = response.into_parts();
            let answer = HttpAnswer {
                conn,
                body,
                pool: self.pool.clone(),
                bytes_left: ANSWER_BYTES_MAX,
                deadline,
                secrets: target.secrets.clone(),
            };
            return Ok((Response::from_parts(head, ()), answer));
        }
    }
}

/// The receiver of a request.
struct HttpTarget<'a> {
    remote: &'a RemoteHost,
    /// The address that errors name.
    address: String,
    secrets: &'a Arc<Secrets>,
}

impl HttpTarget<'_> {
    fn unreachable(&self, what: String) -> CallError {
        CallError::Connect {
            address: self.address.clone(),
            what,
        }
    }
}

/// A request that is not sent yet.
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

/// An answer that is being received. Dropping it cancels the call.
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
    /// Checks that a response is a stream of events; otherwise returns an error that describes it.
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
            let (status, headers) = (head.status().as_u16(), head.headers());
            let error = vendor_error::error_response(status, headers, &body, SystemTime::now());
            return Err(error);
        }
        let kind = kind.unwrap_or_default();
        let excerpt: String = body.trim().chars().take(EXCERPT_CHARS_MAX).collect();
        Err(CallError::Malformed(format!(
            "it is `{kind}` and not a stream of events; is base_url right? It begins: {excerpt}"
        )))
    }

    /// Reads a response that is not a stream, up to a limit.
    async fn read_all(mut self, bytes_max: usize) -> Vec<u8> {
        let mut body = Vec::new();
        let deadline = Instant::now() + REFUSAL_TIMEOUT;
        while body.len() < bytes_max {
            match timeout_at(deadline, self.next_chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None)) => {
                    self.end();
                    break;
                }
                Ok(Err(_)) | Err(_) => break,
            }
        }
        body.truncate(bytes_max);
        body
    }

    /// Restarts the idle timeout after a meaningful event.
    pub(crate) fn renew_deadline(&mut self) {
        self.deadline.renew();
    }

    /// Returns the next bytes; `None` at the end.
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
            let remaining = self.bytes_left.checked_sub(bytes.len());
            self.bytes_left = remaining.ok_or_else(|| {
                CallError::Malformed(format!("it is longer than {ANSWER_BYTES_MAX} bytes"))
            })?;
            return Ok(Some(bytes));
        }
    }

    /// Ends a complete answer: keeps the connection if the response ends now, or soon.
    pub(crate) fn end(mut self) {
        let mut context = Context::from_waker(Waker::noop());
        if self.poll_end(&mut context).is_ready() {
            return self.release();
        }
        tokio::spawn(async move {
            let ending = std::future::poll_fn(|context| self.poll_end(context));
            if timeout(END_TIMEOUT, ending).await.is_ok() {
                self.release();
            }
        });
    }

    fn release(self) {
        // A broken connection is not free, and is dropped.
        self.pool.keep(self.conn);
    }

    /// Polls for the end of the response, and discards further data.
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

/// Returns an error with its cause, which holds the reason.
fn with_cause(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
