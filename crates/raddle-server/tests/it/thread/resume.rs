//! `thread/resume`.

use std::sync::Arc;

use raddle_core::ports::Journal;
use raddle_core::{Class, Event, Record, Seq, ThreadId, Timestamp};
use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;
use crate::script;

#[tokio::test]
async fn conversation() {
    play("thread/resume").await;
}

/// A client that subscribes mid-turn receives every open item, and from there on both receive the
/// same.
#[tokio::test]
async fn two_subscribers_receive_the_same_events() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    let turn = client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "item/agentMessage/delta" {}

    let mut other = TestClient::connect(&mut server).await;
    let params = json!({"threadId": thread, "model": "other"});
    let resumed = other.ask("thread/resume", params).await.expect("a thread");
    // The thread has a subscriber and a running turn, so the request's settings do not apply.
    assert_eq!(resumed["model"], "");
    assert_eq!(other.next().await["method"], "thread/goal/cleared");
    assert_eq!(other.next().await["method"], "item/started");
    assert_eq!(other.next().await["params"]["delta"], "hel");
    let params = json!({"threadId": thread, "turnId": turn["turn"]["id"]});
    other.request("turn/interrupt", params);
    assert!(other.next().await["result"].is_object());
    for method in ["item/completed", "thread/status/changed", "turn/completed"] {
        let (first_message, second_message) = (client.next().await, other.next().await);
        assert_eq!(first_message["method"], method);
        assert_eq!(first_message["params"], second_message["params"]);
        assert_eq!(first_message.get("seq"), second_message.get("seq"));
    }
}

/// The next server opens the thread of a server that has ended, with the settings of the request.
#[tokio::test]
async fn a_stored_thread_is_opened() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says: &'static [&str]| {
        let threads = script::threads_of(journal.clone(), says);
        Server::open(harness.options(), threads).expect("a server")
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

/// Commands must not run because of an observer: it opens no thread whose work would start.
#[tokio::test]
async fn an_observer_starts_no_work() {
    let input = json!([{"text": {"text": "hi"}}]);
    let turn_started = json!({"turnStarted": {"turn": "t", "kind": "work"}});
    let queued = json!({"inputQueued": {"item": "q", "input": input}});
    let goal = json!({"goalSet": {"objective": "it", "status": "active"}});
    for pending_event in [None, Some(turn_started), Some(queued), Some(goal)] {
        let harness = Harness::new();
        let journal = Arc::new(MemoryJournal::new());
        let open = || {
            let threads = script::threads_of(journal.clone(), &["hel…"]);
            Server::open(harness.options(), threads).expect("a server")
        };
        let mut first = open();
        let mut client = TestClient::connect(&mut first).await;
        let thread = client.start_thread().await;
        drop(client);
        first.drain().await;
        let id: ThreadId = thread.as_str().unwrap().parse().unwrap();
        let head = journal.head(id).await.unwrap();
        if let Some(event) = &pending_event {
            let event: Event = serde_json::from_value(event.clone()).unwrap();
            let record = Record {
                seq: head.next(),
                at: Timestamp(1),
                body: event.into(),
            };
            let appended = journal.append(id, head, &[record], Class::Power).await;
            appended.expect("capacity");
        }
        let head_before = journal.head(id).await.unwrap();

        let mut second = open();
        let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
        let mut observer =
            TestClient::connect_with(&mut second, ConnectionLimits::default(), capabilities).await;
        let params = json!({"threadId": thread});
        let resumed = observer.ask("thread/resume", params.clone()).await;
        assert_eq!(
            resumed.is_ok(),
            pending_event.is_none(),
            "{pending_event:?}: {resumed:?}"
        );
        let Err(error) = resumed else {
            continue;
        };
        assert_eq!(error["data"]["errorInfo"], "observer", "{pending_event:?}");
        let read = observer.ask("thread/read", params.clone()).await;
        read.expect("a look");
        assert_eq!(
            journal.head(id).await,
            Ok::<Seq, _>(head_before),
            "{pending_event:?}"
        );

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
        assert!(
            answered["result"].is_object(),
            "{pending_event:?}: {answered}"
        );
    }
}
