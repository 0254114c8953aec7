//! `thread/resume`.

use std::sync::Arc;

use raddle_core::ports::Journal;
use raddle_core::{Class, Event, Record, Seq, ThreadId, Timestamp};
use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Stage;
use crate::script;

#[tokio::test]
async fn conversation() {
    play("thread/resume").await;
}

/// Another client that comes in the middle sees everything that is open, and from there on both hear the
/// same.
#[tokio::test]
async fn two_clients_hear_the_same() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    let turn = client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "item/agentMessage/delta" {}

    let mut other = TestClient::connect(&mut server).await;
    let params = json!({"threadId": thread, "model": "other"});
    let resumed = other.ask("thread/resume", params).await.expect("a thread");
    // Someone is there and a turn runs, so what it wants otherwise does not count.
    assert_eq!(resumed["model"], "");
    assert_eq!(other.next().await["method"], "thread/goal/cleared");
    assert_eq!(other.next().await["method"], "item/started");
    assert_eq!(other.next().await["params"]["delta"], "hel");
    let params = json!({"threadId": thread, "turnId": turn["turn"]["id"]});
    other.request("turn/interrupt", params);
    assert!(other.next().await["result"].is_object());
    for word in ["item/completed", "thread/status/changed", "turn/completed"] {
        let (mine, its) = (client.next().await, other.next().await);
        assert_eq!(mine["method"], word);
        assert_eq!(mine["params"], its["params"]);
        assert_eq!(mine.get("seq"), its.get("seq"));
    }
}

/// A thread of a server that has ended is opened by the next, with what the client wants otherwise.
#[tokio::test]
async fn a_stored_thread_is_opened() {
    let stage = Stage::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says: &'static [&str]| {
        let threads = script::threads_of(journal.clone(), says);
        Server::open(stage.options(), threads).expect("a server")
    };
    let mut first = open(&["hello"]);
    let mut client = TestClient::connect(&mut first).await;
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "turn/completed" {}
    drop(client);
    first.drain().await;

    let mut second = open(&[]);
    let mut client = TestClient::connect(&mut second).await;
    let params = json!({"threadId": thread, "model": "other", "sandbox": "danger-full-access"});
    let resumed = client.ask("thread/resume", params).await.expect("a thread");
    assert_eq!(resumed["model"], "other");
    assert_eq!(resumed["sandbox"]["type"], "dangerFullAccess");
    assert_eq!(resumed["thread"]["turns"][0]["items"][1]["text"], "hello");
}

/// Commands must not run because an observer looks: it opens no thread whose work would begin.
#[tokio::test]
async fn an_observer_makes_no_work_begin() {
    let input = json!([{"text": {"text": "hi"}}]);
    let began = json!({"turnStarted": {"turn": "t", "kind": "work"}});
    let queued = json!({"inputQueued": {"item": "q", "input": input}});
    let goal = json!({"goalSet": {"objective": "it", "status": "active"}});
    for left in [None, Some(began), Some(queued), Some(goal)] {
        let stage = Stage::new();
        let journal = Arc::new(MemoryJournal::new());
        let open = || {
            let threads = script::threads_of(journal.clone(), &["hel…"]);
            Server::open(stage.options(), threads).expect("a server")
        };
        let mut first = open();
        let mut client = TestClient::connect(&mut first).await;
        let thread = client.start_thread().await;
        drop(client);
        first.drain().await;
        let id: ThreadId = thread.as_str().unwrap().parse().unwrap();
        let head = journal.head(id).await.unwrap();
        if let Some(event) = &left {
            let event: Event = serde_json::from_value(event.clone()).unwrap();
            let record = Record {
                seq: head.next(),
                at: Timestamp(1),
                body: event.into(),
            };
            let appended = journal.append(id, head, &[record], Class::Power).await;
            appended.expect("room");
        }
        let before = journal.head(id).await.unwrap();

        let mut second = open();
        let wishes = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
        let mut observer =
            TestClient::introduced(&mut second, ConnectionLimits::default(), wishes).await;
        let params = json!({"threadId": thread});
        let resumed = observer.ask("thread/resume", params.clone()).await;
        assert_eq!(resumed.is_ok(), left.is_none(), "{left:?}: {resumed:?}");
        let Err(error) = resumed else {
            continue;
        };
        assert_eq!(error["data"]["errorInfo"], "observer", "{left:?}");
        let read = observer.ask("thread/read", params.clone()).await;
        read.expect("a look");
        assert_eq!(journal.head(id).await, Ok::<Seq, _>(before), "{left:?}");

        let mut driver = TestClient::connect(&mut second).await;
        let resumed = driver.ask("thread/resume", params.clone()).await;
        resumed.expect("a thread");
        let id = observer.request("thread/resume", params);
        let answered = loop {
            let message = observer.next().await;
            if message["id"] == id {
                break message;
            }
        };
        assert!(answered["result"].is_object(), "{left:?}: {answered}");
    }
}
