//! Two processes that share a journal, and a client of one of them that uses what the other one has.

/// What comes over a way, and what becomes of it when it ends, with the other process played by the test.
mod scripted_peer;

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use raddle_agent::Liveness;
use raddle_core::ThreadId;
use raddle_core::ports::{BoxFuture, Journal as _, ReadError};
use raddle_rpc::{Connection, ConnectionLimits, DialError, Transport, memory};
use raddle_server::{Options, Peers, Server};
use raddle_store::MemoryJournal;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::client::TestClient;
use crate::player::Stage;
use crate::script::threads_at;

/// The processes that are alive, and how each is reached, if it is.
#[derive(Debug, Default)]
struct FakePeers {
    connections: Mutex<HashMap<String, Option<mpsc::UnboundedSender<Connection>>>>,
    /// How often someone looked whether another is alive.
    liveness_checks: watch::Sender<u32>,
    /// Whether those who look wait for what they find.
    is_dark: watch::Sender<bool>,
}

impl Liveness for FakePeers {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            self.liveness_checks.send_modify(|it| *it += 1);
            let light = self.is_dark.subscribe().wait_for(|it| !it).await.is_ok();
            Ok(light
                && self
                    .connections
                    .lock()
                    .expect("the town")
                    .contains_key(node))
        })
    }
}

impl Peers for FakePeers {
    fn alive(&self) -> BoxFuture<'_, Vec<String>> {
        let names = self
            .connections
            .lock()
            .expect("the town")
            .keys()
            .cloned()
            .collect();
        Box::pin(ready(names))
    }

    fn dial<'a>(
        &'a self,
        node: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Connection, DialError>> {
        let town = self.connections.lock().expect("the town");
        let dialled = match town.get(node) {
            None => Err(DialError::NotThere(std::io::ErrorKind::NotFound.into())),
            Some(None) => Err(DialError::Refused("it speaks otherwise".to_owned())),
            Some(Some(door)) => {
                let (near, mut far) = memory(ConnectionLimits::default());
                far.peer.transport = Transport::Relay;
                door.send(far).map(|()| near).map_err(|_| {
                    let gone = std::io::ErrorKind::ConnectionRefused;
                    DialError::NotThere(gone.into())
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
    /// Ends it in good order.
    async fn end(self) {
        let _ = self.end.send(());
        self.ended.await.expect("a good end");
    }
}

/// Two processes and a stage for both.
struct PeerPair {
    harness: Stage,
    peers: Arc<FakePeers>,
    journal: Arc<MemoryJournal>,
}

impl PeerPair {
    fn new() -> Self {
        Self {
            harness: Stage::new(),
            peers: Arc::default(),
            journal: Arc::new(MemoryJournal::new()),
        }
    }

    /// A process whose model says this, and its client.
    async fn start(&self, node: &'static str, says: &[&str]) -> (TestClient, PeerServer) {
        let numbered = json!({"extensions": {"raddle/seq": {}}});
        self.start_for(node, says, numbered).await
    }

    /// The same with a client of these capabilities.
    async fn start_for(
        &self,
        node: &'static str,
        says: &[&str],
        capabilities: Value,
    ) -> (TestClient, PeerServer) {
        let (door, mut came) = mpsc::unbounded_channel();
        self.enter(node, Some(door));
        let options = Options {
            peers: Some(self.peers.clone()),
            ..self.harness.options()
        };
        let threads = threads_at(node, self.peers.clone(), self.journal.clone(), says);
        let mut server = Server::open(options, threads).expect("a server");
        let client =
            TestClient::introduced(&mut server, ConnectionLimits::default(), capabilities).await;
        let (end, mut told_to_end) = oneshot::channel();
        let town = self.peers.clone();
        let ended = tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(connection) = came.recv() => drop(server.serve(connection)),
                    _ = &mut told_to_end => break,
                }
            }
            drop(came);
            server.drain().await;
            town.connections.lock().expect("the town").remove(node);
        });
        (client, PeerServer { end, ended })
    }

    fn enter(&self, node: &str, door: Option<mpsc::UnboundedSender<Connection>>) {
        let mut town = self.peers.connections.lock().expect("the town");
        town.insert(node.to_owned(), door);
    }
}

/// Everything that comes until a notification of this name, which is the last.
async fn until(client: &mut TestClient, method: &str) -> Vec<Value> {
    let mut heard = vec![client.next().await];
    while heard[heard.len() - 1]["method"] != method {
        heard.push(client.next().await);
    }
    heard
}

/// The answer to a request, whatever is told before it.
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

/// The answer to a request, which comes before anything is told of the turn; what came before it is dropped.
fn take_answer(told: &mut Vec<Value>, id: i64) -> Value {
    let at = told
        .iter()
        .position(|it| it["id"] == id)
        .expect("an answer");
    let answer = told.drain(..=at).next_back().expect("it was found");
    assert_eq!(told[0]["method"], "thread/status/changed");
    assert_eq!(told[1]["method"], "turn/started");
    answer
}

fn forget_when(told: &mut Value) {
    told["emittedAtMs"].take();
}

fn turn(thread: &Value) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]})
}

fn numbers(heard: &[Value]) -> Vec<u64> {
    heard.iter().filter_map(|it| it["seq"].as_u64()).collect()
}

/// A request that makes a thread finds what it made in the other process, and its client hears of that; so does
/// one that changes it.
#[tokio::test]
async fn a_request_is_done_once_in_two_processes() {
    let pair = PeerPair::new();
    let keyed = json!({"extensions": {"raddle/idempotency": {}}});
    let (mut one, _first) = pair.start_for("one", &[], keyed.clone()).await;
    let (mut other, _second) = pair.start_for("other", &[], keyed).await;
    let begin = json!({"clientRequestId": "k"});
    let begun = one.ask("thread/start", begin.clone()).await;
    let thread = begun.expect("a thread")["thread"]["id"].clone();
    let name = json!({"threadId": thread, "name": "warp", "clientRequestId": "k"});
    for client in [&mut one, &mut other] {
        let id = client.request("thread/start", begin.clone());
        let mut answer = client.next().await;
        while answer["id"] != id {
            answer = client.next().await;
        }
        assert_eq!(answer["result"]["thread"]["id"], thread, "{answer}");
    }
    let id = one.request("thread/name/set", name.clone());
    let heard = until(&mut one, "thread/name/updated").await;
    assert!(
        heard
            .iter()
            .any(|it| it["id"] == id && it["result"] == json!({}))
    );
    until(&mut other, "thread/name/updated").await;
    assert_eq!(other.ask("thread/name/set", name).await, Ok(json!({})));
    let listed = other.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_thread_of_another_process_is_used_like_ones_own() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hello"]).await;
    let (mut guest, second) = pair.start("second", &[]).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    assert_eq!(resumed.expect("a thread")["thread"]["id"], thread);

    let asked = guest.request("turn/start", turn(&thread));
    let mut told = until(&mut guest, "turn/completed").await;
    let answer = take_answer(&mut told, asked);
    let last = &told[told.len() - 1]["params"]["turn"];
    assert_eq!(answer["result"]["turn"]["id"], last["id"]);
    let mut heard = until(&mut owner, "turn/completed").await;
    heard.iter_mut().chain(&mut told).for_each(forget_when);
    assert_eq!(told, heard, "both are told the same");

    let list = guest.ask("thread/list", json!({})).await.expect("a list");
    assert_eq!(
        list["data"][0]["extra"],
        json!({"owner": {"node": "first"}})
    );
    let gone = guest
        .ask("thread/unsubscribe", json!({"threadId": thread}))
        .await;
    assert_eq!(gone, Ok(json!({"status": "unsubscribed"})));
    second.end().await;
    first.end().await;
}

#[tokio::test]
async fn a_turn_goes_on_where_its_client_is_when_its_process_ends() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hel…"]).await;
    let (mut guest, second) = pair.start("second", &["hello again"]).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let asked = guest.request("turn/start", turn(&thread));
    let mut told = until(&mut guest, "item/agentMessage/delta").await;
    let answer = take_answer(&mut told, asked);
    first.end().await;
    told.extend(until(&mut guest, "turn/completed").await);

    let is_told = |method: &str| told.iter().filter(|it| it["method"] == method).count();
    assert_eq!(is_told("turn/started"), 1);
    assert_eq!(is_told("thread/closed"), 0);
    let ended = &told[told.len() - 1]["params"]["turn"];
    assert_eq!(ended["id"], answer["result"]["turn"]["id"]);
    assert_eq!(ended["status"], "completed");
    let numbers = numbers(&told);
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    second.end().await;
}

/// Only the guest asked for it, and it is no record, so no number is taken away from it.
#[tokio::test(start_paused = true)]
async fn who_asked_for_it_hears_what_a_turn_of_another_process_waits_for() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hel…"]).await;
    let keen = json!({"extensions": {"raddle/progress": {}}});
    let (mut guest, second) = pair.start_for("second", &[], keen).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let asked = guest.request("turn/start", turn(&thread));
    let mut told = until(&mut guest, "turn/progress").await;
    let answer = take_answer(&mut told, asked);
    let progress = &told[told.len() - 1];
    let params = &progress["params"];
    assert_eq!(params["threadId"], thread);
    assert_eq!(params["turnId"], answer["result"]["turn"]["id"]);
    assert_eq!(params["waitingFor"]["type"], "model");
    assert!(params["sinceMs"].is_u64(), "{params}");
    assert_eq!(progress.get("seq"), None);
    let interrupt = json!({"threadId": thread, "turnId": params["turnId"]});
    guest.request("turn/interrupt", interrupt);
    let heard = until(&mut owner, "turn/completed").await;
    assert!(heard.iter().all(|it| it["method"] != "turn/progress"));
    second.end().await;
    first.end().await;
}

const OBSERVER: &str = r#"{"extensions": {"raddle/roles": {"role": "observer"}}}"#;

/// A thread is followed through any process of the home.
#[tokio::test]
async fn an_observer_reads_the_workspace_of_a_thread_of_another_process() {
    let pair = PeerPair::new();
    let file = pair.harness.path("notes");
    std::fs::write(&file, "x").expect("a file");
    let (mut owner, first) = pair.start("first", &[]).await;
    let observer = serde_json::from_str(OBSERVER).expect("JSON");
    let (mut observer, second) = pair.start_for("second", &[], observer).await;
    let begin = json!({"cwd": pair.harness.path("")});
    let begun = owner.ask("thread/start", begin).await;
    let thread = begun.expect("a thread")["thread"]["id"].clone();
    let (followed, read) = (json!({"threadId": thread}), json!({"path": file}));
    let refused = observer.ask("fs/readFile", read.clone()).await;
    let refused = refused.expect_err("no thread is followed");
    assert_eq!(refused["data"]["errorInfo"], "observer", "{refused}");
    let resumed = observer.ask("thread/resume", followed.clone()).await;
    resumed.expect("a thread");
    let served = answer(&mut observer, "fs/readFile", read.clone()).await;
    assert!(served.is_ok(), "{served:?}");
    let outside = json!({"path": "/etc/passwd"});
    let refused = answer(&mut observer, "fs/readFile", outside).await;
    assert!(refused.is_err(), "{refused:?}");
    let left = answer(&mut observer, "thread/unsubscribe", followed).await;
    left.expect("it was followed");
    let refused = answer(&mut observer, "fs/readFile", read).await;
    assert!(refused.is_err(), "{refused:?}");
    second.end().await;
    first.end().await;
}

/// Commands must not run because an observer looks, also where another process had the thread.
#[tokio::test]
async fn an_observer_begins_no_work_that_another_process_left() {
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
    // The observer cannot follow it here without taking it over.
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
async fn a_process_that_speaks_otherwise_is_named() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &[]).await;
    let (mut guest, second) = pair.start("second", &[]).await;
    let thread = owner.start_thread().await;
    pair.enter("first", None);
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
async fn what_a_client_does_not_want_to_hear_is_left_out_on_the_way() {
    let pair = PeerPair::new();
    let (mut owner, first) = pair.start("first", &["hello"]).await;
    let unwanted = json!({"optOutNotificationMethods": ["item/agentMessage/delta"]});
    let (mut guest, second) = pair.start_for("second", &[], unwanted).await;
    let thread = owner.start_thread().await;
    let resumed = guest
        .ask("thread/resume", json!({"threadId": thread}))
        .await;
    resumed.expect("a thread");
    let asked = guest.request("turn/start", turn(&thread));
    let mut told = until(&mut guest, "turn/completed").await;
    take_answer(&mut told, asked);
    let heard = until(&mut owner, "turn/completed").await;
    let methods = |told: &[Value]| -> Vec<Value> {
        let told = told.iter().filter(|it| it["method"].is_string());
        told.map(|it| it["method"].clone()).collect()
    };
    let mut expected = methods(&heard);
    expected.retain(|it| it != "item/agentMessage/delta");
    assert!(expected.len() < methods(&heard).len());
    assert_eq!(methods(&told), expected);
    assert_eq!(numbers(&told), [] as [u64; 0], "it did not ask for numbers");
    second.end().await;
    first.end().await;
}
