//! The HTTP client against a server on this machine.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{ClientRequest, ClientResult, PingRequest, RequestId, ServerJsonRpcMessage};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

use super::*;
use crate::mcp::connection::lifecycle;
use crate::mcp::tool_changes;

/// A limit that only detects hangs.
const HANG: Duration = Duration::from_secs(90);

/// Returns the response to a request.
type Respond = dyn Fn(Parts, Value) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync;

/// Serves requests on a port of this machine, and returns its address.
pub(crate) async fn serve(
    respond: impl Fn(&Parts, Value) -> Response<Full<Bytes>> + Send + Sync + 'static,
) -> String {
    serve_slowly(move |head, body| Box::pin(ready(respond(&head, body)))).await
}

/// Serves requests whose responses may take time.
async fn serve_slowly(
    respond: impl Fn(Parts, Value) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let respond: Arc<Respond> = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = respond.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let respond = respond.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.expect("a body").to_bytes();
                    let body = match serde_json::from_slice(&body) {
                        Ok(body) => body,
                        Err(_) => Value::from(String::from_utf8_lossy(&body)),
                    };
                    Ok::<_, Infallible>(respond(head, body).await)
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    format!("http://{address}")
}

/// Builds a response with headers.
pub(crate) fn reply(
    status: u16,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let body = Full::new(body.into());
    response.body(body).expect("a response")
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const EVENTS: (&str, &str) = ("content-type", "text/event-stream");
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#;

fn ping() -> ClientJsonRpcMessage {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    ClientJsonRpcMessage::request(ping, RequestId::Number(1))
}

fn client() -> HttpClient {
    HttpClient::new(ModelClient::new())
}

/// Posts a ping, and describes the outcome in a line.
async fn outcome(client: &HttpClient, url: &str, session: Option<&str>) -> String {
    let posted = client
        .post_message_with_max_sse_event_size(
            url.into(),
            ping(),
            session.map(Arc::from),
            None,
            HashMap::new(),
            64,
        )
        .await;
    match posted {
        Ok(StreamableHttpPostResponse::Accepted) => "accepted".to_owned(),
        Ok(StreamableHttpPostResponse::Json(_, session)) => format!("json {session:?}"),
        Ok(StreamableHttpPostResponse::Sse(mut events, _)) => {
            let mut texts = Vec::new();
            while let Some(event) = events.next().await {
                texts.push(match event {
                    Ok(event) => event.data.unwrap_or_default(),
                    Err(error) => error.to_string(),
                });
            }
            format!("events {texts:?}")
        }
        Ok(other) => format!("{other:?}"),
        Err(StreamableHttpError::AuthRequired(error)) => error.to_string(),
        Err(StreamableHttpError::InsufficientScope(error)) => {
            format!("scope {:?}", error.required_scope)
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn responses_mean_what_the_protocol_says() {
    type Case = (
        u16,
        &'static [(&'static str, &'static str)],
        &'static str,
        &'static str,
    );
    const CASES: &[Case] = &[
        (200, &[JSON], RESULT, "json None"),
        (
            200,
            &[JSON, ("mcp-session-id", "s")],
            RESULT,
            r#"json Some("s")"#,
        ),
        (
            200,
            &[EVENTS],
            "data: a\n\ndata: b\n\n",
            r#"events ["a", "b"]"#,
        ),
        (
            200,
            &[EVENTS],
            "data: 1234567890123456789012345678901234567890123456789012345678901234",
            r#"events ["body error: an event of the MCP server is longer than 64 bytes"]"#,
        ),
        (202, &[], "", "accepted"),
        (204, &[], "", "accepted"),
        (400, &[JSON], ERROR, "json None"),
        (404, &[], "gone", "Session expired (HTTP 404)"),
        (
            401,
            &[("www-authenticate", "Bearer realm=x")],
            "",
            "authorization required: Bearer realm=x",
        ),
        (401, &[], "", "authorization required: Bearer"),
        (
            403,
            &[("www-authenticate", "Bearer scope=\"a b\"")],
            "",
            r#"scope Some("a b")"#,
        ),
        (
            403,
            &[JSON],
            ERROR,
            r#"unexpected server response: HTTP 403 Forbidden: {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#,
        ),
        (429, &[JSON], ERROR, "HTTP 429"),
        (503, &[], "later", "HTTP 503"),
        (
            200,
            &[("content-type", "text/html")],
            "<p>",
            r#"Unexpected content type: Some("text/html")"#,
        ),
        (
            302,
            &[("location", "/login")],
            "",
            "Client error: the MCP server redirects to /login, in a way that loses the message; set `url` to that address",
        ),
    ];
    let cases = Arc::new(Mutex::new(CASES.iter()));
    let url = serve(move |_, _| {
        let (status, headers, body, _) = cases.lock().expect("a lock").next().expect("a case");
        reply(*status, headers, *body)
    })
    .await;
    let client = client();
    for (status, _, body, expected) in CASES {
        let outcome = outcome(&client, &url, Some("s")).await;
        assert_eq!(outcome, *expected, "{status} {body}");
    }
}

#[tokio::test]
async fn a_long_response_fails() {
    let url = serve(|_, _| reply(200, &[JSON], vec![b' '; (16 << 20) + 1])).await;
    let expected = "Client error: the MCP server's response is longer than 16777216 bytes";
    assert_eq!(outcome(&client(), &url, None).await, expected);
}

#[tokio::test]
async fn a_response_with_many_values_fails() {
    let result = format!("[{}0]", "0,".repeat(100_000));
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{result}}}}}"#);
    let event = format!("id: 7\ndata: {message}\n\ndata: b\n\n");
    let url = serve(move |head, _| match head.uri.path() {
        "/events" => reply(200, &[EVENTS], event.clone()),
        _ => reply(200, &[JSON], message.clone()),
    })
    .await;
    let client = client();
    let expected = "Client error: the MCP server's response is rejected: the message has more than \
                    100000 values";
    assert_eq!(outcome(&client, &url, None).await, expected);

    // An event becomes an error of its request, and the stream goes on.
    let url = format!("{url}/events");
    let posted = client.post_message(url.into(), ping(), None, None, HashMap::new());
    let Ok(StreamableHttpPostResponse::Sse(events, _)) = posted.await else {
        panic!("no events");
    };
    let events: Vec<Sse> = events.map(|it| it.expect("an event")).collect().await;
    assert_eq!(events[0].id.as_deref(), Some("7"));
    let error: ServerJsonRpcMessage =
        serde_json::from_str(events[0].data.as_deref().unwrap_or_default()).expect("a message");
    assert!(matches!(error, ServerJsonRpcMessage::Error(_)));
    assert_eq!(events[1].data.as_deref(), Some("b"));
}

#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let elsewhere = serve(|_, _| panic!("another origin was called")).await;
    let url = serve(move |head, body| match head.uri.path() {
        "/mcp" => reply(307, &[("location", "/mcp/")], ""),
        "/mcp/" => {
            assert_eq!(
                (head.method.as_str(), &body["method"]),
                ("POST", &json!("ping"))
            );
            assert_eq!(head.headers["mcp-session-id"], "s");
            reply(200, &[JSON], RESULT)
        }
        "/loop" => reply(308, &[("location", "/loop")], ""),
        _ => reply(307, &[("location", elsewhere.as_str())], ""),
    })
    .await;
    for (path, expected) in [
        ("/mcp", "json None"),
        ("/loop", "and again"),
        ("/other", "which is another origin"),
    ] {
        let outcome = outcome(&client(), &format!("{url}{path}"), Some("s")).await;
        assert!(outcome.contains(expected), "{outcome}");
    }
}

/// Tokens that are renewed when one is rejected.
#[derive(Debug, Default)]
struct CountedTokens(Mutex<usize>);

impl TokenSource for CountedTokens {
    fn token<'a>(
        &'a self,
        rejected: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, HttpError>> {
        let mut count = self.0.lock().expect("a lock");
        if rejected == Some(count.to_string().as_str()) {
            *count += 1;
        }
        let token = count.to_string();
        Box::pin(async move { Ok(Some(token)) })
    }
}

#[tokio::test]
async fn a_rejected_token_is_renewed_once() {
    for (accepted, expected) in [
        ("Bearer 0", "json None"),
        ("Bearer 1", "json None"),
        ("Bearer 2", "authorization required: Bearer"),
    ] {
        let url = serve(
            move |head, _| match head.headers["authorization"] == accepted {
                true => reply(200, &[JSON], RESULT),
                false => reply(401, &[], ""),
            },
        )
        .await;
        let client = client().with_tokens(Arc::new(CountedTokens::default()));
        assert_eq!(outcome(&client, &url, None).await, expected, "{accepted}");
        let is_challenged = expected != "json None";
        assert_eq!(client.challenge().is_some(), is_challenged, "{accepted}");
    }
}

#[tokio::test]
async fn headers_of_the_configuration_are_checked() {
    for (name, value, expected) in [
        ("X-Team", "a", None),
        ("a b", "c", Some("its name is invalid")),
        ("X-Team", "a\nb", Some("not printable ASCII")),
        ("Mcp-Session-Id", "a", Some("the protocol sets it")),
    ] {
        let headers = [(name.to_owned(), value.to_owned())];
        let transport = connect(client(), "http://127.0.0.1:9/mcp", &headers);
        let error = transport.err().map(|it| it.to_string());
        match (error, expected) {
            (None, None) => {}
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            (error, expected) => panic!("{error:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_session_lists_tools() {
    let url = serve(|head, body| {
        assert_eq!(head.headers["x-team"], "a");
        let id = &body["id"];
        match body["method"].as_str() {
            Some("initialize") => {
                let result = json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "test", "version": "1"},
                });
                let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                reply(200, &[JSON, ("mcp-session-id", "s")], text)
            }
            Some("tools/list") => {
                assert_eq!(head.headers["mcp-session-id"], "s");
                assert_eq!(head.headers["mcp-protocol-version"], "2025-06-18");
                let tool = json!({"name": "look", "inputSchema": {"type": "object"}});
                let result = json!({"tools": [tool]});
                let text = json!({"jsonrpc": "2.0", "id": id, "result": result});
                reply(200, &[EVENTS], format!("id: 1\ndata: {text}\n\n"))
            }
            Some(_) => reply(202, &[], ""),
            None => reply(405, &[], ""),
        }
    })
    .await;
    let headers = [("X-Team".to_owned(), "a".to_owned())];
    let transport = connect(client(), &format!("{url}/mcp"), &headers).expect("a transport");
    let service = rmcp::serve_client((), transport).await.expect("a session");
    let tools = service.list_all_tools().await.expect("tools");
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "look");
}

#[tokio::test]
async fn a_server_without_unknown_methods_is_of_an_earlier_revision() {
    let url = serve(|head, body| {
        let result = match body["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": body["params"]["protocolVersion"],
                "capabilities": {},
                "serverInfo": {"name": "test", "version": "1"},
            }),
            Some(_) if body["id"].is_null() => return reply(202, &[], ""),
            // The result of each method that the server does not know.
            Some(_) => json!({}),
            None => return reply(405, &[], head.method.to_string()),
        };
        let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
        reply(200, &[JSON], text)
    })
    .await;
    let transport = connect(client(), &url, &[]).expect("a transport");
    let service = rmcp::serve_client_with_lifecycle((), transport, lifecycle()).await;
    let service = service.expect("a session");
    assert!(service.peer_info().is_some());
}

#[tokio::test]
async fn a_request_without_a_token_gets_the_challenge() {
    for (status, value, expected) in [
        (401, "Bearer scope=\"a b\"", Some("Bearer scope=\"a b\"")),
        (403, "Bearer", Some("Bearer")),
        (200, "Bearer", None),
        (404, "Bearer", None),
    ] {
        let url = serve(move |head, _| {
            assert!(!head.headers.contains_key("authorization"));
            assert_eq!(head.headers["x-team"], "a");
            reply(status, &[("www-authenticate", value)], "")
        })
        .await;
        let headers = [("X-Team".to_owned(), "a".to_owned())];
        let challenge = client().request_challenge(&url, &headers).await;
        assert_eq!(challenge.as_deref(), expected, "{status}");
    }
}

#[tokio::test]
async fn replies_do_not_wait_for_a_server_that_accepts_none() {
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let url = serve_slowly(move |_, body| {
        let _ = sender.send(body);
        Box::pin(pending())
    })
    .await;
    let client = client();
    for id in 0..100 {
        let reply = ClientJsonRpcMessage::response(ClientResult::empty(()), RequestId::Number(id));
        let posted = client.post_message(url.as_str().into(), reply, None, None, HashMap::new());
        let posted = timeout(HANG, posted).await.expect("no wait");
        assert!(matches!(posted, Ok(StreamableHttpPostResponse::Accepted)));
    }
    for _ in 0..32 {
        let reply = arrived.recv().await.expect("a reply");
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    assert_eq!(client.control_posts.dropped(), 68);
}

#[tokio::test]
async fn a_flood_of_requests_leaves_the_session_usable() {
    let url = serve_slowly(|_, body| {
        let id = body["id"].clone();
        let result = match body["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }),
            Some("tools/list") => {
                let tool = json!({"name": "look", "inputSchema": {"type": "object"}});
                json!({"tools": [tool]})
            }
            Some(_) => return Box::pin(ready(reply(202, &[], ""))),
            // The stream of the session.
            None if id.is_null() && body["result"].is_null() => {
                let ping = |id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
                let events = (0..500).map(|id| format!("data: {}\n\n", ping(id)));
                let events: String = events.collect();
                return Box::pin(ready(reply(200, &[EVENTS], events)));
            }
            // A reply, which is not accepted.
            None => return Box::pin(pending()),
        };
        let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        Box::pin(ready(reply(200, &[JSON, ("mcp-session-id", "s")], text)))
    })
    .await;
    let client = client();
    let transport = connect(client.clone(), &url, &[]).expect("a transport");
    let service = rmcp::serve_client((), transport).await.expect("a session");
    // All requests of the server are answered before its replies time out: 32 are being posted.
    let flooded = async {
        while client.control_posts.dropped() < 500 - 32 {
            service.list_all_tools().await.expect("tools");
        }
    };
    timeout(HANG, flooded).await.expect("answered requests");
}

#[tokio::test]
async fn all_streams_of_a_server_are_read_at_the_pace_of_one() {
    let events = "data: {}\n\n".repeat(1_250);
    let url = serve(move |_, _| reply(200, &[EVENTS], events.clone())).await;
    let (client, began) = (client(), Instant::now());
    let outcomes = tokio::join!(outcome(&client, &url, None), outcome(&client, &url, None));
    for outcome in [outcomes.0, outcomes.1] {
        assert_eq!(outcome.matches("{}").count(), 1_250);
    }
    // A burst of 2,000 events is free, and each of the others costs a millisecond.
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_millis(450), "{elapsed:?}");
}

#[tokio::test]
async fn changes_of_tools_are_followed_after_a_failed_subscription() {
    let subscriptions = Arc::new(AtomicUsize::new(0));
    let count = subscriptions.clone();
    let url = serve(move |_, body| {
        let id = &body["id"];
        let result = match body["method"].as_str() {
            Some("server/discover") => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            Some("subscriptions/listen") if count.fetch_add(1, Ordering::Relaxed) == 0 => {
                return reply(503, &[], "later");
            }
            Some("subscriptions/listen") => {
                let filter = &body["params"]["notifications"];
                assert_eq!(filter, &json!({"toolsListChanged": true}));
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                let events = [
                    (
                        "subscriptions/acknowledged",
                        json!({"_meta": meta, "notifications": filter}),
                    ),
                    ("tools/list_changed", json!({"_meta": meta})),
                ];
                let events = events.map(|(name, params)| {
                    let method = format!("notifications/{name}");
                    let event = json!({"jsonrpc": "2.0", "method": method, "params": params});
                    format!("data: {event}\n\n")
                });
                return reply(200, &[EVENTS], events.concat());
            }
            _ => return reply(202, &[], ""),
        };
        let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        reply(200, &[JSON], text)
    })
    .await;
    let transport = connect(client(), &url, &[]).expect("a transport");
    let service = rmcp::serve_client_with_lifecycle((), transport, lifecycle()).await;
    let service = service.expect("a session");
    let changed = Notify::new();
    let changes = async {
        // The time without a subscription counts as a change.
        changed.notified().await;
        assert_eq!(subscriptions.load(Ordering::Relaxed), 1);
        changed.notified().await;
        assert_eq!(subscriptions.load(Ordering::Relaxed), 2);
    };
    let followed = async {
        tokio::select! {
            () = tool_changes::follow(service.peer(), &changed) => panic!("it gave up"),
            () = changes => {}
        }
    };
    timeout(HANG, followed).await.expect("changes");
}
