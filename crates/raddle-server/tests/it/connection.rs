//! A connection from its first request to its end, with a misbehaving client.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raddle_agent::Liveness;
use raddle_core::ports::{BoxFuture, ReadError};
use raddle_rpc::{Close, Connection, ConnectionLimits, DialError};
use raddle_server::{Options, PeerCaller, PeerNode, Peers, Server};
use serde_json::{Value, json};

use crate::client::{ConfigWriteLock, StalledClient, TestClient, base64, id_of, is_slow_answer};
use crate::player::Harness;

#[tokio::test]
async fn a_client_that_closes_its_input_still_gets_its_responses() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let running = slow.request(&mut client).await;
    client.connection.outgoing.close(Close::NORMAL);
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
    assert_eq!(client.next_or_end().await, None);
    client.when_ended().await;
}

#[tokio::test]
async fn the_requests_of_a_disconnected_client_end() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    slow.request(&mut client).await;
    let mut closed = client.disconnect().await;
    other
        .ask("account/read", json!({}))
        .await
        .expect("the other goes on");
    drop(slow);
    closed.when_ended().await;
    other
        .ask("account/read", json!({}))
        .await
        .expect("the other goes on");
}

#[tokio::test]
async fn queued_requests_of_a_disconnected_client_are_not_started() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    slow.request(&mut client).await;
    // Queued behind the waiting write.
    let edit = json!({"keyPath": "late", "value": true, "mergeStrategy": "replace"});
    client.request("config/value/write", edit);
    let read = other.request("config/read", json!({}));
    client
        .ask("account/read", json!({}))
        .await
        .expect("in line by now");

    let mut closed = client.disconnect().await;
    drop(slow);
    closed.when_ended().await;
    let answer = other.next().await;
    assert_eq!(id_of(&answer), read);
    assert_eq!(answer["result"]["config"], json!({"slow": true}));
}

#[tokio::test(start_paused = true)]
async fn a_drain_answers_pending_requests_and_closes_connections() {
    let start = tokio::time::Instant::now();
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut idle = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let running = slow.request(&mut client).await;

    let drained = tokio::spawn(async move {
        server.drain().await;
        server.connections()
    });
    assert_eq!(idle.next_or_end().await, None);
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
    assert_eq!(client.next_or_end().await, None);
    assert_eq!(drained.await.unwrap(), 0);
    assert!(start.elapsed() < Duration::from_secs(1), "a limit ran out");
}

#[tokio::test]
async fn a_drain_does_not_wait_for_ever() {
    let harness = Harness::new();
    let mut server = Server::open(
        Options {
            drain: Duration::from_millis(1),
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    slow.request(&mut client).await;
    server.drain().await;
    assert_eq!(client.next_or_end().await, None);
    drop(slow);
}

/// A client that closed its input and reads slowly still gets responses that wait for capacity.
#[tokio::test(start_paused = true)]
async fn a_slow_client_that_closes_its_input_gets_all_responses() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut slow = StalledClient::connect(&mut server, 1).await;
    std::fs::write(harness.path("file"), "hello").unwrap();
    for _ in 0..5 {
        slow.request("fs/readFile", json!({"path": harness.path("file")}));
    }
    slow.hang_up();
    for _ in 0..5 {
        // Longer than the timeout for requests at the end of a connection; the clock is paused.
        tokio::time::sleep(Duration::from_secs(100)).await;
        let answers = slow.take_queued().await;
        assert_eq!(answers[0]["result"]["dataBase64"], base64("hello"));
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read() {
    const REQUESTS: i64 = 4000;
    const ANSWER_BYTES_MAX: usize = 2 << 10;
    let harness = Harness::new();
    let mut server = harness.open();
    let limits = ConnectionLimits {
        outgoing_bytes_max: 64 << 10,
        ..ConnectionLimits::default()
    };
    let mut stalled = TestClient::connect_within(&mut server, limits).await;
    let mut other = TestClient::connect(&mut server).await;

    // The responses exceed the queue and the transport many times.
    let first = stalled.request("permissionProfile/list", json!({}));
    for _ in 1..REQUESTS {
        stalled.request("permissionProfile/list", json!({}));
    }
    let proof = harness.path("proof");
    stalled.request("fs/writeFile", json!({"path": proof, "dataBase64": ""}));
    let mut queued_max = 0;
    for _ in 0..1000 {
        other
            .ask("account/read", json!({}))
            .await
            .expect("the other is served");
        queued_max = queued_max.max(stalled.queue.queued_bytes());
    }
    assert!(
        queued_max >= limits.outgoing_bytes_max,
        "{queued_max} bytes are queued"
    );
    assert!(
        queued_max <= limits.outgoing_bytes_max + ANSWER_BYTES_MAX,
        "{queued_max} bytes are queued"
    );
    assert!(
        !std::fs::exists(&proof).unwrap(),
        "its last request was read"
    );

    // Once it reads, it gets every response.
    for id in first..first + REQUESTS {
        let answer = stalled.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(stalled.next().await["result"], json!({}));
    assert!(std::fs::exists(&proof).unwrap());
}

#[tokio::test]
async fn an_answer_to_an_unknown_request_is_ignored() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for id in 0..100 {
        client.send(&json!({"id": id, "result": {"decision": "accept"}}));
    }
    client
        .ask("account/read", json!({}))
        .await
        .expect("the next answer is the next message");
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_running_request_goes_on() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let running = slow.request(&mut client).await;
    client.send(&json!({"id": running, "method": "account/read", "params": {}}));
    let message = format!("Invalid request: a request with id {running} is still running");
    assert_eq!(
        client.next().await,
        json!({"id": running, "error": {"code": -32600, "message": message}})
    );
    // The same number as a string is another id.
    client.send(&json!({"id": running.to_string(), "method": "account/read", "params": {}}));
    assert_eq!(client.next().await["id"], running.to_string());
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
}

/// Sends many requests of all kinds at once and collects the responses to each.
async fn flood(requests_max: usize) -> BTreeMap<i64, Vec<Value>> {
    const REQUESTS: usize = 10_000;
    let harness = Harness::new();
    let mut server = Server::open(
        Options {
            requests_max,
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    std::fs::write(harness.path("file"), "hello").unwrap();
    for number in 0..REQUESTS {
        let path = harness.path(&format!("file{}", number % 7));
        let (method, params) = match number % 10 {
            0 => ("account/read", json!({})),
            1 => ("fs/readFile", json!({"path": harness.path("file")})),
            2 => (
                "fs/writeFile",
                json!({"path": path, "dataBase64": base64(&path)}),
            ),
            3 => ("fs/remove", json!({"path": path})),
            4 => ("no/such/method", json!({})),
            5 => ("fs/getMetadata", json!({"path": harness.path("none")})),
            6 => ("model/list", json!(7)),
            7 => ("config/read", json!({})),
            8 => ("fs/unwatch", json!({"watchId": "w"})),
            _ => (
                "initialize",
                json!({"clientInfo": {"name": "again", "version": "1"}}),
            ),
        };
        client.request(method, params);
    }
    let mut answers: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    client.connection.outgoing.close(Close::NORMAL);
    while let Some(answer) = client.next_or_end().await {
        answers.entry(id_of(&answer)).or_default().push(answer);
    }
    assert_eq!(answers.len(), REQUESTS);
    answers
}

/// Returns the expected error code for a request of the flood; its number gives its kind.
fn expected_code(id: i64) -> Option<i64> {
    // The first request after `initialize` has id 2.
    match (id - 2) % 10 {
        4 => Some(-32601),
        5 => Some(-32603),
        6 | 9 => Some(-32600),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_requests_gets_its_one_answer() {
    for (id, answers) in flood(100_000).await {
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(
            answers[0]["error"]["code"].as_i64(),
            expected_code(id),
            "{answers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_request_gets_one_answer_under_overload() {
    for (id, answers) in flood(16).await {
        assert_eq!(answers.len(), 1, "{answers:?}");
        let code = answers[0]["error"]["code"].as_i64();
        assert!(
            code == Some(-32001) || code == expected_code(id),
            "{answers:?}"
        );
    }
}

/// A log that panics on the trace event of the connection's task for a notification.
struct PanickingLog;

impl tracing::Subscriber for PanickingLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "raddle_server::connection"
            && *metadata.level() == tracing::Level::TRACE
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        panic!("a fault outside of any handler");
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_panic_in_a_connections_own_task_ends_that_connection_only() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let watch = json!({"watchId": "w", "path": harness.path("")});
    client.ask("fs/watch", watch).await.expect("a watch");
    let slow = ConfigWriteLock::new(&harness);
    slow.request(&mut client).await;
    assert_eq!(server.panicked_connections(), 0);

    let _log_guard = tracing::subscriber::set_default(PanickingLog);
    client.send(&json!({"method": "initialized"}));
    assert_eq!(client.next_or_end().await, None, "the connection ends");
    client.when_ended().await;
    assert!(client.queue.is_gone(), "nothing holds it any more");
    assert_eq!(server.panicked_connections(), 1);
    assert_eq!(server.connections(), 1);
    let answer = other.ask("account/read", json!({})).await;
    answer.expect("the other goes on");
    drop(slow);
}

/// The other processes of a home, which cannot be listed.
#[derive(Debug)]
struct PanickingPeers;

impl Liveness for PanickingPeers {
    fn is_alive<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(ready(Ok(false)))
    }
}

impl Peers for PanickingPeers {
    fn alive(&self) -> BoxFuture<'_, Vec<PeerNode>> {
        async fn fault() -> Vec<PeerNode> {
            tokio::task::yield_now().await;
            panic!("a fault in a handler that has waited");
        }
        Box::pin(fault())
    }

    fn dial<'a>(
        &'a self,
        _: &'a str,
        _: PeerCaller<'a>,
    ) -> BoxFuture<'a, Result<Connection, DialError>> {
        let refused = DialError::Refused("it is not there".to_owned());
        Box::pin(ready(Err(refused)))
    }
}

/// The lines at the level `error`, as a list of fields.
#[derive(Clone, Default)]
struct ErrorLog(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl tracing::Subscriber for ErrorLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = BTreeMap::new();
        let mut visit = |field: &tracing::field::Field, value: &dyn Debug| {
            fields.insert(field.name().to_owned(), format!("{value:?}"));
        };
        event.record(&mut visit);
        self.0.lock().expect("lines").push(fields);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_panic_in_a_handler_that_waits_is_logged_and_answered() {
    let harness = Harness::new();
    let options = Options {
        peers: Some(Arc::new(PanickingPeers)),
        ..harness.options()
    };
    let mut server = Server::open(options, crate::script::threads(&[])).expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let log = ErrorLog::default();
    let _log_guard = tracing::subscriber::set_default(log.clone());
    let error = client.ask("thread/list", json!({})).await;
    assert_eq!(error.expect_err("an error")["code"], -32603);
    let written = log.0.lock().expect("lines").clone();
    let lines = written.iter().map(|it| (&*it["message"], &*it["method"]));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines, [("a handler panicked", r#""thread/list""#)]);
    let answer = client.ask("account/read", json!({})).await;
    answer.expect("the connection goes on");
}
