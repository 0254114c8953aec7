//! The meaning of a server's responses: status, content type and body.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};
use raddle_model::ResponseBody;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::error::{HttpError, TransportError};
use super::events::events;
use super::stream_pacer::StreamPacer;
use crate::mcp::message_values::check_values;
use crate::mcp::stdio::LARGE_MESSAGE_BYTES;

/// The header of a session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Limit: a response of an MCP server that is not a stream; beyond it, the request fails.
const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// Limit: the body of an error response of an MCP server; beyond it, the rest is dropped.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Timeout for the body of an error response after its head.
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// Characters shown of a response that is not JSON-RPC.
const EXCERPT_CHARS_MAX: usize = 300;

/// The facts about a posted message that the meaning of its response depends on.
#[derive(Debug)]
pub(super) struct PostedMessage {
    has_session: bool,
    is_request: bool,
    /// The id of a `server/discover` request.
    discover_id: Option<RequestId>,
}

impl PostedMessage {
    pub(super) fn new(message: &ClientJsonRpcMessage, has_session: bool) -> Self {
        let request = match message {
            ClientJsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        let discover = request.filter(|it| matches!(it.request, ClientRequest::DiscoverRequest(_)));
        Self {
            has_session,
            is_request: request.is_some(),
            discover_id: discover.map(|it| it.id.clone()),
        }
    }

    /// Returns the meaning of the response.
    pub(super) async fn outcome(
        self,
        response: Response<ResponseBody>,
        event_bytes_max: usize,
        pacer: Arc<StreamPacer>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let (head, body) = response.into_parts();
        if let Some(error) = access_error(&head) {
            body.discard();
            return Err(error);
        }
        match head.status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                body.discard();
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if self.has_session => {
                body.discard();
                return Err(StreamableHttpError::SessionExpired);
            }
            status if !status.is_success() => return self.failure(&head, body).await,
            _ => {}
        }
        let session = session_of(&head.headers);
        match ContentKind::of(&head.headers) {
            ContentKind::Events => {
                let events = events(body, event_bytes_max, pacer);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            ContentKind::Json => {
                pacer.wait_to_read().await;
                let bytes = read(body, RESPONSE_BYTES_MAX).await?;
                pacer.spend_read(bytes.len());
                pacer.spend_message(&bytes);
                check_values(&bytes).map_err(HttpError::from)?;
                let (parsed, bytes) = parse(bytes).await?;
                match parsed {
                    Ok(message) => {
                        let message = self.checked(message);
                        Ok(StreamableHttpPostResponse::Json(message, session))
                    }
                    // Some servers answer a notification with a body of their own.
                    Err(_) if !self.is_request => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => {
                        let text = String::from_utf8_lossy(&bytes);
                        let text =
                            format!("no JSON-RPC message: {error}; it is {}", excerpt(&text));
                        Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
                    }
                }
            }
            ContentKind::Other(_) if !self.is_request => {
                body.discard();
                Ok(StreamableHttpPostResponse::Accepted)
            }
            ContentKind::Other(kind) => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// Returns a message, or an error in place of a result that is none of `server/discover`. A
    /// server of an earlier revision may answer each unknown method with an empty result.
    fn checked(&self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        match &self.discover_id {
            Some(id) if is_other_result(&message) => {
                let error = ErrorData::invalid_request("server/discover: another result", None);
                ServerJsonRpcMessage::error(error, Some(id.clone()))
            }
            _ => message,
        }
    }

    /// Returns the meaning of a response with an error status. JSON-RPC errors are passed on as
    /// such.
    async fn failure(
        self,
        head: &Parts,
        body: ResponseBody,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let status = head.status;
        let is_json = ContentKind::of(&head.headers) == ContentKind::Json;
        let status_error = status_error(head);
        if let Some(error) = status_error
            && (!is_json || status == StatusCode::TOO_MANY_REQUESTS)
        {
            body.discard();
            return Err(error);
        }
        let text = read_error(body).await;
        let is_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let message: Option<ServerJsonRpcMessage> = serde_json::from_str(&text).ok();
        let message = message.filter(|it| matches!(it, ServerJsonRpcMessage::Error(_)));
        // A server of an earlier revision rejects `server/discover` without naming its id.
        if let Some(id) = self.discover_id
            && !self.has_session
            && status.is_client_error()
            && !is_access
        {
            let error = match message {
                Some(ServerJsonRpcMessage::Error(error)) => error.error,
                _ => {
                    let text = format!("server/discover: HTTP {status}: {}", excerpt(&text));
                    ErrorData::invalid_request(text, None)
                }
            };
            let message = ServerJsonRpcMessage::error(error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if let Some(message) = message.filter(|_| is_json && !is_access) {
            let session = session_of(&head.headers);
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        Err(unexpected_status(head, &text))
    }
}

/// Parses a message. A large one is parsed outside the threads of the runtime.
async fn parse(
    bytes: Vec<u8>,
) -> Result<(serde_json::Result<ServerJsonRpcMessage>, Vec<u8>), TransportError> {
    if bytes.len() < LARGE_MESSAGE_BYTES {
        return Ok((serde_json::from_slice(&bytes), bytes));
    }
    Ok(spawn_blocking(move || (serde_json::from_slice(&bytes), bytes)).await?)
}

/// Whether a message is a result, but not of `server/discover`.
fn is_other_result(message: &ServerJsonRpcMessage) -> bool {
    match message {
        ServerJsonRpcMessage::Response(response) => {
            !matches!(response.result, ServerResult::DiscoverResult(_))
        }
        _ => false,
    }
}

/// Returns the events of the response to a `GET`.
pub(super) async fn stream_of(
    response: Response<ResponseBody>,
    has_session: bool,
    event_bytes_max: usize,
    pacer: Arc<StreamPacer>,
) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
    let (head, body) = response.into_parts();
    let error = match head.status {
        StatusCode::METHOD_NOT_ALLOWED => Some(StreamableHttpError::ServerDoesNotSupportSse),
        StatusCode::NOT_FOUND if has_session => Some(StreamableHttpError::SessionExpired),
        _ => access_error(&head),
    };
    if let Some(error) = error {
        body.discard();
        return Err(error);
    }
    if !head.status.is_success() {
        let text = read_error(body).await;
        return Err(unexpected_status(&head, &text));
    }
    match ContentKind::of(&head.headers) {
        ContentKind::Events => Ok(events(body, event_bytes_max, pacer)),
        ContentKind::Json => {
            let kind = Some("application/json".to_owned());
            Err(StreamableHttpError::UnexpectedContentType(kind))
        }
        ContentKind::Other(kind) => Err(StreamableHttpError::UnexpectedContentType(kind)),
    }
}

/// Returns the result of a `DELETE`. A server need not support it, and may have dropped the
/// session.
pub(super) fn deletion_of(response: Response<ResponseBody>) -> Result<(), TransportError> {
    let (head, body) = response.into_parts();
    body.discard();
    let is_gone = matches!(
        head.status,
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND
    );
    match is_gone || head.status.is_success() {
        true => Ok(()),
        false => Err(access_error(&head).unwrap_or_else(|| unexpected_status(&head, ""))),
    }
}

/// The content type of a response.
#[derive(Debug, PartialEq, Eq)]
enum ContentKind {
    Json,
    Events,
    Other(Option<String>),
}

impl ContentKind {
    fn of(headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.map(|it| String::from_utf8_lossy(it.as_bytes()).to_ascii_lowercase());
        let essence = kind.as_deref().and_then(|it| it.split(';').next());
        match essence.map(str::trim) {
            Some("application/json") => Self::Json,
            Some("text/event-stream") => Self::Events,
            _ => Self::Other(kind),
        }
    }
}

/// Returns the error of a response that requires authorization, or more of it.
fn access_error(head: &Parts) -> Option<TransportError> {
    let challenge = challenge_of(head.status, &head.headers)?;
    Some(match head.status {
        StatusCode::FORBIDDEN => {
            let scope = challenge_parameter(&challenge, "scope");
            let error = InsufficientScopeError::new(challenge, scope);
            StreamableHttpError::InsufficientScope(error)
        }
        _ => StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)),
    })
}

/// Returns the challenge of a response that requires authorization, or more of it.
pub(super) fn challenge_of(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    let challenge = headers.get(WWW_AUTHENTICATE);
    let challenge = challenge.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    match status {
        // Some servers send no challenge, but mean this one.
        StatusCode::UNAUTHORIZED => Some(challenge.unwrap_or_else(|| "Bearer".to_owned())),
        StatusCode::FORBIDDEN => challenge,
        _ => None,
    }
}

/// Returns a parameter of a `WWW-Authenticate` challenge, quoted or not.
pub(crate) fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let (before, after) = rest.split_once('=')?;
        let found = before.rsplit([' ', ',']).next().unwrap_or_default();
        let is_found = found.eq_ignore_ascii_case(name);
        let after = after.trim_start();
        let (value, tail) = match after.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        if is_found {
            return Some(value);
        }
        rest = tail;
    }
}

/// Splits a quoted text behind its first quote into its value and the text behind it.
fn quoted_value(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            char => value.push(char),
        }
    }
    (value, "")
}

/// Returns the error of a server that is overloaded or has failed.
fn status_error(head: &Parts) -> Option<TransportError> {
    let status = head.status;
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let retry_after = head.headers.get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|it| it.to_str().ok());
    let error = HttpStatusError::new(status.as_u16(), retry_after.map(str::to_owned));
    Some(StreamableHttpError::HttpStatus(error))
}

fn unexpected_status(head: &Parts, text: &str) -> TransportError {
    status_error(head).unwrap_or_else(|| {
        let text = match text.trim() {
            "" => format!("HTTP {}", head.status),
            text => format!("HTTP {}: {}", head.status, excerpt(text)),
        };
        StreamableHttpError::UnexpectedServerResponse(text.into())
    })
}

fn session_of(headers: &HeaderMap) -> Option<String> {
    let session = headers.get(SESSION_ID)?.to_str().ok()?;
    Some(session.to_owned())
}

fn excerpt(text: &str) -> String {
    match text.trim() {
        "" => "empty".to_owned(),
        text => text.chars().take(EXCERPT_CHARS_MAX).collect(),
    }
}

/// Reads a whole body, up to a limit.
pub(crate) async fn read(mut body: ResponseBody, bytes_max: usize) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next_chunk().await? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(HttpError::ResponseTooLong { bytes_max });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads the beginning of an error response.
async fn read_error(mut body: ResponseBody) -> String {
    let mut bytes = Vec::new();
    let deadline = Instant::now() + ERROR_TIMEOUT;
    while bytes.len() < ERROR_BYTES_MAX
        && let Ok(Ok(Some(chunk))) = timeout_at(deadline, body.next_chunk()).await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(ERROR_BYTES_MAX);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_challenges() {
        for (challenge, name, expected) in [
            ("Bearer", "scope", None),
            ("Bearer scope=read", "scope", Some("read")),
            (r#"Bearer scope="a b", error="x""#, "scope", Some("a b")),
            (r#"Bearer error="x",SCOPE="a b""#, "scope", Some("a b")),
            (
                r#"Bearer realm="scope=no", scope=yes"#,
                "scope",
                Some("yes"),
            ),
            (r#"Bearer my_scope="no""#, "scope", None),
            (r#"Bearer realm="a \"b\" c""#, "realm", Some(r#"a "b" c"#)),
            (r#"Bearer realm="open"#, "realm", Some("open")),
            (
                r#"Bearer resource_metadata="https://a.org/.well-known/x?y=z""#,
                "resource_metadata",
                Some("https://a.org/.well-known/x?y=z"),
            ),
        ] {
            let value = challenge_parameter(challenge, name);
            assert_eq!(value.as_deref(), expected, "{challenge}");
        }
    }

    #[test]
    fn content_types() {
        for (value, expected) in [
            ("application/json", ContentKind::Json),
            ("Application/JSON; charset=utf-8", ContentKind::Json),
            ("text/event-stream", ContentKind::Events),
            (
                "application/jsonp",
                ContentKind::Other(Some("application/jsonp".to_owned())),
            ),
        ] {
            let value = hyper::header::HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value)]);
            assert_eq!(ContentKind::of(&headers), expected);
        }
        assert_eq!(ContentKind::of(&HeaderMap::new()), ContentKind::Other(None));
    }
}
