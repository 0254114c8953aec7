//! Streamable HTTP: the transport to MCP servers that have a URL, over the HTTP client of models.
//!
//! ```text
//! let client = HttpClient::new(model_client.clone());
//! let client = client.with_tokens(tokens);                // only for a server with OAuth
//! let transport = connect(client, url, &headers)?;        // on a Tokio runtime
//! let service = rmcp::serve_client(handler, transport).await?;
//! ```
//!
//! A request that needs authorization fails with `StreamableHttpError::AuthRequired`. Then
//! `HttpClient::challenge` of a clone returns the challenge, which a login needs.

mod address;
mod control_posts;
mod error;
mod events;
mod response;
mod runtime;
mod stream_pacer;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use address::{is_same_origin, origin, parse_url, port};
pub(crate) use error::HttpError;
pub(crate) use response::{challenge_parameter, read};

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use raddle_model::{CallTimeouts, ModelClient, ResponseBody};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::time::timeout;

use self::control_posts::{ControlPosts, is_control};
use self::error::TransportError;
use self::response::{PostedMessage, SESSION_ID};
use self::stream_pacer::StreamPacer;

/// Limit: time for the connection to an MCP server; beyond it, the request fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A timeout that never expires. A response may take as long as its tool, whose own timeout drops
/// the request.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Limit: one event of an MCP server's stream; beyond it, the stream ends.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Limit: requests to an MCP server over HTTP that wait for a response at a time; beyond it, others
/// wait for them.
const REQUESTS_MAX: usize = 256;

/// Longest delay before a broken stream is opened again.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(30);

/// Timeout of a request for a challenge. After it, a login starts without the challenge.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The request for a challenge. A server that requires a login rejects it unread.
const CHALLENGE_REQUEST: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#;

/// Redirects that one request follows.
const REDIRECTS_MAX: usize = 5;

/// The header of the last event that was received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that a configuration cannot set, because the protocol or HTTP does.
const RESERVED_HEADERS: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-session-id",
    "transfer-encoding",
];

const BOTH_KINDS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Source of the access tokens of one server.
pub(crate) trait TokenSource: Send + Sync + fmt::Debug {
    /// Returns the access token for a request; `None` if no user is signed in. A token that the
    /// server rejected is not returned again: it is renewed, once for all callers.
    fn token<'a>(
        &'a self,
        rejected: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, HttpError>>;
}

/// Connects to a server at a URL, with the headers of its configuration, such as
/// `("Authorization", "Bearer …")`. Call it on a Tokio runtime; the first request is the handshake.
pub(crate) fn connect(
    client: HttpClient,
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<HttpClient>, HttpError> {
    parse_url(url)?;
    let headers: Result<_, HttpError> = headers.iter().map(|it| header(&it.0, &it.1)).collect();
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(RECONNECT_DELAY_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers?)
        .max_concurrent_requests(REQUESTS_MAX)
        .max_sse_event_size(EVENT_BYTES_MAX);
    config.retry_config = Arc::new(backoff);
    // The tasks of the transport parse events.
    let runtime = runtime::handle();
    let _entered = runtime.as_ref().map(|it| it.enter());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Checks a header of the configuration.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let error = |what| HttpError::Header {
        name: name.to_owned(),
        what,
    };
    let header: HeaderName = name
        .parse()
        .map_err(|_| error("its name is invalid; use letters, digits and `-`"))?;
    if RESERVED_HEADERS.contains(&header.as_str()) {
        return Err(error("the protocol sets it; remove it"));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        error("its value has a character that is not printable ASCII; check its source")
    })?;
    value.set_sensitive(true);
    Ok((header, value))
}

/// The HTTP client of one server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    client: ModelClient,
    tokens: Option<Arc<dyn TokenSource>>,
    pacer: Arc<StreamPacer>,
    control_posts: Arc<ControlPosts>,
    challenge: Arc<Mutex<Option<String>>>,
}

impl HttpClient {
    /// Builds the client of one server, over the connections of the client of models.
    pub(crate) fn new(client: ModelClient) -> Self {
        Self {
            client,
            tokens: None,
            pacer: Arc::new(StreamPacer::new()),
            control_posts: Arc::new(ControlPosts::new()),
            challenge: Arc::default(),
        }
    }

    /// Sends an access token of this source with each request.
    pub(crate) fn with_tokens(mut self, tokens: Arc<dyn TokenSource>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Returns the challenge of the server's last response, if that required a login or another
    /// scope. The errors of a failed handshake do not always contain it.
    pub(crate) fn challenge(&self) -> Option<String> {
        let challenge = self.challenge.lock();
        challenge.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the challenge in the response to a request without a token; `None` if the server
    /// sends none, or cannot be reached.
    pub(crate) async fn request_challenge(
        &self,
        url: &str,
        headers: &[(String, String)],
    ) -> Option<String> {
        let headers: Result<_, HttpError> = headers.iter().map(|it| header(&it.0, &it.1)).collect();
        let mut call = HttpCall::new(Method::POST, url, None, headers.ok()?).ok()?;
        let json = HeaderValue::from_static("application/json");
        call.headers.insert(CONTENT_TYPE, json);
        call.headers.insert(ACCEPT, BOTH_KINDS);
        call.body = Bytes::from_static(CHALLENGE_REQUEST);
        let response = timeout(CHALLENGE_TIMEOUT, self.follow(&call, None)).await;
        let response = response.ok()?.ok()?;
        let challenge = response::challenge_of(response.status(), response.headers());
        response.into_body().discard();
        challenge
    }

    /// Sends a request, and records its challenge.
    async fn send(
        &self,
        call: HttpCall,
        token: Option<String>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let response = self.authorize(call, token).await?;
        let challenge = response::challenge_of(response.status(), response.headers());
        let mut last = self
            .challenge
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = challenge;
        drop(last);
        Ok(response)
    }

    /// Sends a request with the server's access token. A rejected token is renewed once.
    async fn authorize(
        &self,
        call: HttpCall,
        token: Option<String>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let Some(tokens) = &self.tokens else {
            return self.follow(&call, token.as_deref()).await;
        };
        let token = tokens.token(None).await?;
        let response = self.follow(&call, token.as_deref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(rejected) = token
            && let Some(renewed) = tokens.token(Some(&rejected)).await?
            && renewed != rejected
        {
            response.into_body().discard();
            return self.follow(&call, Some(&renewed)).await;
        }
        Ok(response)
    }

    /// Sends a request, and follows redirects within its origin.
    async fn follow(
        &self,
        call: &HttpCall,
        token: Option<&str>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let mut uri = call.uri.clone();
        for _ in 0..=REDIRECTS_MAX {
            let request = call.request(&uri, token)?;
            let response = self.client.send_request(request, timeouts()).await?;
            let target = address::redirect_target(&uri, response.status(), response.headers())?;
            let Some(target) = target else {
                return Ok(response);
            };
            response.into_body().discard();
            uri = target;
        }
        Err(HttpError::Redirect {
            location: origin(&uri),
            what: "and again; correct its redirects, or `url`",
        })
    }
}

/// Returns the timeouts of a request to a server.
fn timeouts() -> CallTimeouts {
    CallTimeouts {
        connect: CONNECT_TIMEOUT,
        idle: NEVER,
        total: NEVER,
    }
}

/// A request that may be sent more than once.
#[derive(Debug)]
struct HttpCall {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpCall {
    fn new(
        method: Method,
        uri: &str,
        session_id: Option<&str>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, TransportError> {
        let mut headers = HeaderMap::new();
        for (name, value) in custom_headers {
            if [ACCEPT, SESSION_ID, LAST_EVENT_ID].contains(&name) {
                let name = name.as_str().to_owned();
                return Err(StreamableHttpError::ReservedHeaderConflict(name));
            }
            headers.insert(name, value);
        }
        if let Some(session_id) = session_id {
            headers.insert(SESSION_ID, server_value("mcp-session-id", session_id)?);
        }
        Ok(Self {
            method,
            uri: parse_url(uri)?,
            headers,
            body: Bytes::new(),
        })
    }

    fn request(&self, uri: &Uri, token: Option<&str>) -> Result<Request<Bytes>, HttpError> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(token) = token {
            let mut value = server_value("authorization", &format!("Bearer {token}"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }
}

/// Checks the value of a header that a server chose.
fn server_value(name: &str, value: &str) -> Result<HeaderValue, HttpError> {
    HeaderValue::from_str(value).map_err(|_| HttpError::Header {
        name: name.to_owned(),
        what: "the server chose a value that is not printable ASCII",
    })
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            EVENT_BYTES_MAX,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let posted = PostedMessage::new(&message, session_id.is_some());
        let mut call = HttpCall::new(Method::POST, &uri, session_id.as_deref(), custom_headers)?;
        let json = HeaderValue::from_static("application/json");
        call.headers.insert(CONTENT_TYPE, json);
        call.headers.insert(ACCEPT, BOTH_KINDS);
        call.body = serde_json::to_vec(&message)?.into();
        if is_control(&message) {
            let client = self.clone();
            self.control_posts.start(async move {
                let response = client.send(call, auth_header).await?;
                response.into_body().discard();
                Ok::<_, HttpError>(())
            });
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let response = self.send(call, auth_header).await?;
        let pacer = self.pacer.clone();
        posted.outcome(response, max_sse_event_size, pacer).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        let call = HttpCall::new(Method::DELETE, &uri, Some(&session_id), custom_headers)?;
        let response = self.send(call, auth_header).await?;
        response::deletion_of(response)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            EVENT_BYTES_MAX,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        if self.pacer.take_refusal() {
            tracing::warn!("a stream of an MCP server ended: it had an event that cannot be read");
            // The only error that makes the transport give up the stream.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        self.pacer.wait().await;
        let mut call = HttpCall::new(Method::GET, &uri, session_id.as_deref(), custom_headers)?;
        call.headers.insert(ACCEPT, BOTH_KINDS);
        if let Some(id) = last_event_id {
            let id = server_value("last-event-id", &id)?;
            call.headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.send(call, auth_header).await?;
        let pacer = self.pacer.clone();
        response::stream_of(response, session_id.is_some(), max_sse_event_size, pacer).await
    }
}
