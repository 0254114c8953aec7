//! Two processes that share a journal, and a client of one that uses threads of the other.

/// Messages over a link, and its end, with the other process simulated by the test.
mod scripted_peer;

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use raddle_agent::Liveness;
use raddle_core::ThreadId;
use raddle_core::ports::{BoxFuture, Journal as _, ReadError};
use raddle_rpc::{Connection, ConnectionLimits, DialError, Transport, memory};
use raddle_server::{Options, PeerCaller, PeerNode, Peers, Server};
use raddle_store::MemoryJournal;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::client::TestClient;
use crate::player::Harness;
use crate::script::threads_at;

/// The live processes, and the connection to each, if it accepts any.
#[derive(Debug, Default)]
struct FakePeers {
    connections: Mutex<HashMap<String, Option<mpsc::UnboundedSender<Connection>>>>,
    /// Number of liveness checks.
    liveness_checks: watch::Sender<u32>,
    /// Whether liveness checks block.
    checks_block: watch::Sender<bool>,
}

impl Liveness for FakePeers {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            self.liveness_checks.send_modify(|it| *it += 1);
            let unblocked = self
                .checks_block
                .subscribe()
                .wait_for(|it| !it)
                .await
                .is_ok();
            Ok(unblocked
                && self
                    .connections
                    .lock()
                    .expect("the town")
                    .contains_key(node))
        })
    }
}

impl Peers for FakePeers {
    fn alive(&self) -> BoxFuture<'_, Vec<PeerNode>> {
        let connections = self.connections.lock().expect("the town");
        let names = connections.keys().cloned();
        Box::pin(ready(names.map(|name| PeerNode { name }).collect()))
    }

    fn dial<'a>(
        &'a self,
        node: &'a str,
        _: PeerCaller<'a>,
    ) -> BoxFuture<'a, Result<Connection, DialError>> {
        let connections = self.connections.lock().expect("the town");
        let dialled = match connections.get(node) {
            None => Err(DialError::Unreachable(std::io::ErrorKind::NotFound.into())),
            Some(None) => Err(DialError::Refused("it speaks otherwise".to_owned())),
            Some(Some(listener)) => {
                let (client_side, mut server_side) = memory(ConnectionLimits::default());
                server_side.peer.transport = Transport::Relay;
                listener
                    .send(server_side)
                    .map(|()| client_side)
                    .map_err(|_| {
                        let refused = std::io::ErrorKind::ConnectionRefused;
                        DialError::Unreachable(refused.into())
                    })
            }
        };
        Box::pin(ready(dialled))
    }
}

/// One process.
struct PeerServer {
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl PeerServer {
    /// Shuts it down cleanly.
    async fn end(self) {
        let _ = self.end.send(());
        self.ended.await.expect("a good end");
    }
}

/// Two processes and a harness for both.
struct PeerPair {
    harness: Harness,
    peers: Arc<FakePeers>,
    journal: Arc<MemoryJournal>,
}

impl PeerPair {
    fn new() -> Self {
        Self {
            harness: Harness::new(),
            peers: Arc::default(),
            journal: Arc::new(MemoryJournal::new()),
        }
    }

    /// Starts a process with this scripted model, and its client.
    async fn start(&self, node: &'static str, says: &[&str]) -> (TestClient, PeerServer) {
        let capabilities = json!({"extensions": {"raddle/seq": {}}});
        self.start_for(node, says, capabilities).await
    }

    /// Like [`Self::start`], with a client of these capabilities.
    async fn start_for(
        &self,
        node: &'static str,
        says: &[&str],
        capabilities: Value,
    ) -> (TestClient, PeerServer) {
        let (listener, mut accepted) = mpsc::unbounded_channel();
        self.register(node, Some(listener));
        let options = Options {
            peers: Some(self.peers.clone()),
            ..self.harness.options()
        };
        let threads = threads_at(node, self.peers.clone(), self.journal.clone(), says);
        let mut server = Server::open(options, threads).expect("a server");
        let client =
            TestClient::connect_with(&mut server, ConnectionLimits::default(), capabilities).await;
        let (end, mut end_signal) = oneshot::channel();
        let peers = self.peers.clone();
        let ended = tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(connection) = accepted.recv() => drop(server.serve(connection)),
                    _ = &mut end_signal => break,
                }
            }
            drop(accepted);
            server.drain().await;
            peers.connections.lock().expect("the town").remove(node);
        });
        (client, PeerServer { end, ended })
    }

    fn register(&self, node: &str, listener: Option<mpsc::UnboundedSender<Connection>>) {
        let mut connections = self.peers.connections.lock().expect("the town");
        connections.insert(node.to_owned(), listener);
    }
}

/// Returns all messages up to and including a notification of this method.
async fn until(client: &mut TestClient, method: &str) -> Vec<Value> {
    let mut messages = vec![client.next().await];
    while messages[messages.len() - 1]["method"] != method {
        messages.push(client.next().await);
    }
    messages
}

/// Returns the response to a request, and skips the notifications before it.
async fn answer(client: &mut TestClient, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.request(method, params);
    let mut message = client.next().await;
    while message["id"] != id {
        message = client.next().await;
    }
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(message["error"].take()),
    }
}

/// Returns the response to a request, which precedes the notifications of the turn; earlier
/// messages are dropped.
fn take_answer(messages: &mut Vec<Value>, id: i64) -> Value {
    let index = messages
        .iter()
        .position(|it| it["id"] == id)
        .expect("an answer");
    let answer = messages.drain(..=index).next_back().expect("it was found");
    assert_eq!(messages[0]["method"], "thread/status/changed");
    assert_eq!(messages[1]["method"], "turn/started");
    answer
}

fn clear_time(notification: &mut Value) {
    notification["emittedAtMs"].take();
}

fn turn(thread: &Value) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]})
}

fn sequence_numbers(messages: &[Value]) -> Vec<u64> {
    messages
        .iter()
        .filter_map(|it| it["seq"].as_u64())
        .collect()
}

/// A retried request that creates a thread finds the thread in the other process and subscribes its
/// client; so does a request that changes it.
#[tokio::test]
async fn a_request_is_done_once_in_two_processes() {
    let pair = PeerPair::new();
    let capabilities = json!({"extensions": {"raddle/idempotency": {}}});
    let (mut one, _first) = pair.start_for("one", &[], capabilities.clone()).await;
    let (mut other, _second) = pair.start_for("other", &[], capabilities).await;
    let start_params = json!({"clientRequestId": "k"});
    let response = one.ask("thread/start", start_params.clone()).await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    let name = json!({"threadId": thread, "name": "warp", "clientRequestId": "k"});
    for client in [&mut one, &mut other] {
        let id = client.request("thread/start", start_params.clone());
        let mut answer = client.next().await;
        while answer["id"] != id {
            answer = client.next().await;
        }
        assert_eq!(answer["result"]["thread"]["id"], thread, "{answer}");
    }
    let id = one.request("thread/name/set", name.clone());
    let messages = until(&mut one, "thread/name/updated").await;
    assert!(
        messages
            .iter()
            .any(|it| it["id"] == id && it["result"] == json!({}))
    );
    until(&mut other, "thread/name/updated").await;
    assert_eq!(other.ask("thread/name/set", name).await, Ok(json!({})));
    let listed = other.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_thread_of_another_process_is_used_like_a_local_one() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hello"]).await;
    let (mut guest, second) = pair.start("second", &[]).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    assert_eq!(resumed.expect("a thread")["thread"]["id"], thread);

    let request = guest.request("turn/start", turn(&thread));
    let mut guest_messages = until(&mut guest, "turn/completed").await;
    let answer = take_answer(&mut guest_messages, request);
    let last = &guest_messages[guest_messages.len() - 1]["params"]["turn"];
    assert_eq!(answer["result"]["turn"]["id"], last["id"]);
    let mut owner_messages = until(&mut owner, "turn/completed").await;
    owner_messages
        .iter_mut()
        .chain(&mut guest_messages)
        .for_each(clear_time);
    assert_eq!(guest_messages, owner_messages, "both are told the same");

    let list = guest.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(
        list["data"][0]["extra"],
        json!({"owner": {"node": "first"}})
    );
    let unsubscribed = guest
        .ask("thread/unsubscribe", json!({"threadId": thread}))
        .await;
    assert_eq!(unsubscribed, Ok(json!({"status": "unsubscribed"})));
    second.end().await;
    first.end().await;
}

#[tokio::test]
async fn a_turn_continues_with_its_client_when_its_process_ends() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hel…"]).await;
    let (mut guest, second) = pair.start("second", &["hello again"]).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let request = guest.request("turn/start", turn(&thread));
    let mut messages = until(&mut guest, "item/agentMessage/delta").await;
    let answer = take_answer(&mut messages, request);
    first.end().await;
    messages.extend(until(&mut guest, "turn/completed").await);

    let count = |method: &str| messages.iter().filter(|it| it["method"] == method).count();
    assert_eq!(count("turn/started"), 1);
    assert_eq!(count("thread/closed"), 0);
    let ended = &messages[messages.len() - 1]["params"]["turn"];
    assert_eq!(ended["id"], answer["result"]["turn"]["id"]);
    assert_eq!(ended["status"], "completed");
    let seqs = sequence_numbers(&messages);
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    second.end().await;
}

/// Only the guest opted in. `turn/progress` is no record, so there is no sequence number to remove.
#[tokio::test(start_paused = true)]
async fn progress_of_a_turn_in_another_process_is_forwarded() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hel…"]).await;
    let capabilities = json!({"extensions": {"raddle/progress": {}}});
    let (mut guest, second) = pair.start_for("second", &[], capabilities).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let request = guest.request("turn/start", turn(&thread));
    let mut messages = until(&mut guest, "turn/progress").await;
    let answer = take_answer(&mut messages, request);
    let progress = &messages[messages.len() - 1];
    let params = &progress["params"];
    assert_eq!(params["threadId"], thread);
    assert_eq!(params["turnId"], answer["result"]["turn"]["id"]);
    assert_eq!(params["waitingFor"]["type"], "model");
    assert!(params["sinceMs"].is_u64(), "{params}");
    assert_eq!(progress.get("seq"), None);
    let interrupt = json!({"threadId": thread, "turnId": params["turnId"]});
    guest.request("turn/interrupt", interrupt);
    let owner_messages = until(&mut owner, "turn/completed").await;
    assert!(
        owner_messages
            .iter()
            .all(|it| it["method"] != "turn/progress")
    );
    second.end().await;
    first.end().await;
}

const OBSERVER: &str = r#"{"extensions": {"raddle/roles": {"role": "observer"}}}"#;

/// A thread can be followed through any process of the home.
#[tokio::test]
async fn an_observer_reads_the_workspace_of_a_thread_of_another_process() {
    let pair = PeerPair::new();
    let file = pair.harness.path("notes");
    std::fs::write(&file, "x").expect("a file");
    let (mut owner, first) = pair.start("first", &[]).await;
    let observer = serde_json::from_str(OBSERVER).expect("JSON");
    let (mut observer, second) = pair.start_for("second", &[], observer).await;
    let start_params = json!({"cwd": pair.harness.path("")});
    let response = owner.ask("thread/start", start_params).await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    let (thread_params, read) = (json!({"threadId": thread}), json!({"path": file}));
    let refused = observer.ask("fs/readFile", read.clone()).await;
    let refused = refused.expect_err("no thread is followed");
    assert_eq!(refused["data"]["errorInfo"], "observer", "{refused}");
    let resumed = observer.ask("thread/resume", thread_params.clone()).await;
    resumed.expect("a thread");
    let served = answer(&mut observer, "fs/readFile", read.clone()).await;
    assert!(served.is_ok(), "{served:?}");
    let outside = json!({"path": "/etc/passwd"});
    let refused = answer(&mut observer, "fs/readFile", outside).await;
    assert!(refused.is_err(), "{refused:?}");
    let unsubscribed = answer(&mut observer, "thread/unsubscribe", thread_params).await;
    unsubscribed.expect("it was followed");
    let refused = answer(&mut observer, "fs/readFile", read).await;
    assert!(refused.is_err(), "{refused:?}");
    second.end().await;
    first.end().await;
}

/// Commands must not run because of an observer, also if another process owned the thread.
#[tokio::test]
async fn an_observer_does_not_resume_the_work_of_another_process() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hel…"]).await;
    let observer = serde_json::from_str(OBSERVER).expect("JSON");
    let (mut observer, second) = pair.start_for("second", &["hello again"], observer).await;
    let thread = owner.start_thread().await;
    let params = json!({"threadId": thread});
    let resumed = observer.ask("thread/resume", params.clone()).await;
    resumed.expect("a thread");
    owner.request("turn/start", turn(&thread));
    until(&mut observer, "item/agentMessage/delta").await;
    first.end().await;
    // The observer cannot follow it here without becoming its owner.
    until(&mut observer, "thread/closed").await;
    let id: ThreadId = serde_json::from_value(thread).expect("an id");
    let before = pair.journal.head(id).await.expect("a head");
    let refused = answer(&mut observer, "thread/resume", params).await;
    let refused = refused.expect_err("an observer begins nothing");
    assert_eq!(refused["data"]["errorInfo"], "observer", "{refused}");
    assert_eq!(pair.journal.head(id).await, Ok(before));
    second.end().await;
}

#[tokio::test]
async fn an_incompatible_process_is_named_in_the_error() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &[]).await;
    let (mut guest, second) = pair.start("second", &[]).await;
    let thread = owner.start_thread().await;
    pair.register("first", None);
    for (method, params) in [
        ("thread/resume", json!({"threadId": thread})),
        ("turn/start", turn(&thread)),
    ] {
        let refused = guest.ask(method, params).await.expect_err("a refusal");
        assert_eq!(refused["code"], -32600);
        let data = json!({"errorInfo": "owned_elsewhere", "node": "first"});
        assert_eq!(refused["data"], data);
    }
    let read = guest.ask("thread/read", json!({"threadId": thread})).await;
    assert_eq!(read.expect("a look")["thread"]["id"], thread);
    second.end().await;
    first.end().await;
}

#[tokio::test]
async fn notifications_that_a_client_opted_out_of_are_not_forwarded() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hello"]).await;
    let capabilities = json!({"optOutNotificationMethods": ["item/agentMessage/delta"]});
    let (mut guest, second) = pair.start_for("second", &[], capabilities).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let request = guest.request("turn/start", turn(&thread));
    let mut guest_messages = until(&mut guest, "turn/completed").await;
    take_answer(&mut guest_messages, request);
    let owner_messages = until(&mut owner, "turn/completed").await;
    let methods = |messages: &[Value]| -> Vec<Value> {
        let notifications = messages.iter().filter(|it| it["method"].is_string());
        notifications.map(|it| it["method"].clone()).collect()
    };
    let mut expected = methods(&owner_messages);
    expected.retain(|it| it != "item/agentMessage/delta");
    assert!(expected.len() < methods(&owner_messages).len());
    assert_eq!(methods(&guest_messages), expected);
    assert_eq!(
        sequence_numbers(&guest_messages),
        [] as [u64; 0],
        "it did not ask for numbers"
    );
    second.end().await;
    first.end().await;
}
