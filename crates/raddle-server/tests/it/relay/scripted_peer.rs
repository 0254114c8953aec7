use raddle_rpc::{Connection, ConnectionLimits, Frame, Outgoing, memory};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{PeerPair, PeerServer, sequence_numbers, turn, until};
use crate::client::TestClient;

/// A simulated process that owns a thread, and another process whose client uses it.
struct ScriptedPeer {
    pair: PeerPair,
    thread: Value,
    /// Sequence number of the thread's last record.
    head: u64,
    client: TestClient,
    /// Connections to the simulated process.
    accepted: mpsc::UnboundedReceiver<Connection>,
    peer: Connection,
    /// The real owner of the thread. It stays silent.
    first: (TestClient, PeerServer),
    second: PeerServer,
}

impl ScriptedPeer {
    /// Creates the scene: the client has resumed the thread after this record.
    async fn new(after_seq: u64) -> Self {
        let pair = PeerPair::new();
        let mut first = pair.start("first", &["hello"]).await;
        let (mut guest, second) = pair.start("second", &["hello again"]).await;
        let thread = first.0.start_thread().await;
        first.0.request("turn/start", turn(&thread));
        let messages = until(&mut first.0, "turn/completed").await;
        let head = sequence_numbers(&messages).pop().expect("a number");
        let (listener, mut accepted) = mpsc::unbounded_channel();
        pair.register("first", Some(listener));
        let params = json!({"threadId": thread, "afterSeq": after_seq});
        let request = guest.request("thread/resume", params);
        let mut peer = accepted.recv().await.expect("someone comes");
        answer(&mut peer, "initialize", json!({})).await;
        answer(&mut peer, "thread/resume", json!({"resumed": true})).await;
        let answer = guest.next().await;
        assert_eq!(
            (&answer["id"], &answer["result"]),
            (&json!(request), &json!({"resumed": true}))
        );
        Self {
            pair,
            thread,
            head,
            client: guest,
            accepted,
            peer,
            first,
            second,
        }
    }

    fn params(&self) -> Value {
        json!({"threadId": self.thread})
    }

    /// Ends the simulated process. When this returns, the reattachment waits, until the liveness
    /// checks are unblocked.
    async fn kill_with_blocked_checks(&mut self) {
        let peers = self.pair.peers.clone();
        let mut checks = peers.liveness_checks.subscribe();
        let checks_before = *checks.borrow_and_update();
        peers.checks_block.send_replace(true);
        peers.connections.lock().expect("the town").remove("first");
        self.peer = memory(ConnectionLimits::default()).0;
        checks
            .wait_for(|it| *it > checks_before)
            .await
            .expect("a look");
    }

    fn unblock_checks(&self) {
        self.pair.peers.checks_block.send_replace(false);
    }

    async fn end(self) {
        self.second.end().await;
        self.first.1.end().await;
    }
}

/// Returns the next request there, which must have this method.
async fn next_request(peer: &mut Connection, method: &str) -> Value {
    let Some(Frame::Message(frame)) = peer.incoming.next().await else {
        panic!("a message, not the end");
    };
    let request: Value = serde_json::from_slice(&frame).expect("JSON");
    assert_eq!(request["method"], method, "{request}");
    request
}

async fn answer(peer: &mut Connection, method: &str, result: Value) {
    let request = next_request(peer, method).await;
    send(
        &peer.outgoing,
        &json!({"id": request["id"], "result": result}),
    );
}

fn send(outgoing: &Outgoing, message: &Value) {
    outgoing.send(message.to_string().into());
}

/// Returns the client's next message: its method and sequence number.
async fn next_notification(guest: &mut TestClient) -> (String, Option<u64>) {
    let notification = guest.next().await;
    let method = notification["method"].as_str();
    (
        method.unwrap_or("answer").to_owned(),
        notification["seq"].as_u64(),
    )
}

#[tokio::test]
async fn unsubscribing_during_reattachment_ends_the_subscription() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.kill_with_blocked_checks().await;
    let params = scene.params();
    let request = scene.client.request("thread/unsubscribe", params.clone());
    scene.unblock_checks();
    let mut message = scene.client.next().await;
    while message["id"] != request {
        message = scene.client.next().await;
    }
    assert_eq!(message["result"], json!({"status": "unsubscribed"}));
    // No subscription is left behind.
    let second = scene.client.ask("thread/unsubscribe", params).await;
    assert_eq!(second, Ok(json!({"status": "notSubscribed"})));
    scene.end().await;
}

#[tokio::test]
async fn resuming_during_reattachment_repeats_no_event() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.kill_with_blocked_checks().await;
    let (thread, head) = (scene.thread.clone(), scene.head);
    let params = json!({"threadId": thread, "afterSeq": head});
    let request = scene.client.request("thread/resume", params);
    scene.unblock_checks();
    let mut messages = vec![scene.client.next().await];
    while messages[messages.len() - 1]["id"] != request {
        messages.push(scene.client.next().await);
    }
    let answer = messages.pop().expect("an answer");
    assert_eq!(answer["result"]["thread"]["id"], thread, "{answer}");
    // It received the missed records before it resumed.
    let mut seqs = sequence_numbers(&messages);
    assert_eq!(seqs.last(), Some(&head));
    // It continues to receive events, each once.
    scene.client.request("turn/start", turn(&thread));
    let more_messages = until(&mut scene.client, "turn/completed").await;
    seqs.extend(sequence_numbers(&more_messages));
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    scene.end().await;
}

#[tokio::test]
async fn a_lost_sequence_number_ends_the_subscription() {
    let mut scene = ScriptedPeer::new(1).await;
    let lost =
        json!({"method": "warning", "params": scene.params(), "emittedAtMs": 1, "seq": 999_999});
    send(&scene.peer.outgoing, &lost);
    assert_eq!(
        next_notification(&mut scene.client).await,
        ("warning".to_owned(), Some(999_999))
    );
    scene.kill_with_blocked_checks().await;
    scene.unblock_checks();
    assert_eq!(
        next_notification(&mut scene.client).await.0,
        "thread/closed"
    );
    let params = scene.params();
    let unsubscribed = scene.client.ask("thread/unsubscribe", params).await;
    assert_eq!(unsubscribed, Ok(json!({"status": "notSubscribed"})));
    scene.end().await;
}

#[tokio::test]
async fn events_from_a_former_owner_are_ignored() {
    let mut scene = ScriptedPeer::new(1).await;
    // It unloads the thread, and stays alive.
    scene
        .pair
        .peers
        .connections
        .lock()
        .expect("the town")
        .remove("first");
    let params = scene.params();
    send(
        &scene.peer.outgoing,
        &json!({"method": "thread/closed", "params": params}),
    );
    until(&mut scene.client, "turn/completed").await;
    for method in ["thread/archived", "warning"] {
        send(
            &scene.peer.outgoing,
            &json!({"method": method, "params": params, "seq": 2}),
        );
    }
    // The client receives its events here, and no others.
    let thread = scene.thread.clone();
    scene.client.request("turn/start", turn(&thread));
    let messages = until(&mut scene.client, "turn/completed").await;
    let is_stale = |it: &&Value| it["method"] == "thread/archived" || it["method"] == "warning";
    assert_eq!(messages.iter().find(is_stale), None);
    scene.end().await;
}

#[tokio::test]
async fn requests_that_come_back_are_sent_again_in_order() {
    let mut scene = ScriptedPeer::new(1).await;
    let (thread, params) = (scene.thread.clone(), scene.params());
    let names = ["a", "b"];
    let requests = names.map(|name| {
        let params = json!({"threadId": thread, "name": name});
        scene.client.request("thread/name/set", params)
    });
    let mut forwarded = Vec::new();
    for _ in names {
        forwarded.push(next_request(&mut scene.peer, "thread/name/set").await);
    }
    let data = json!({"errorInfo": "owned_elsewhere"});
    let error = json!({"code": -32600, "message": "not here", "data": data});
    for request in forwarded {
        let refusal = json!({"id": request["id"], "error": error});
        send(&scene.peer.outgoing, &refusal);
    }
    // The subscription comes back too. It is the same process that owns the thread.
    answer(&mut scene.peer, "thread/resume", json!({})).await;
    for (name, request) in names.into_iter().zip(requests) {
        let again = next_request(&mut scene.peer, "thread/name/set").await;
        assert_eq!(again["params"]["name"], name);
        let outgoing = &scene.peer.outgoing;
        send(outgoing, &json!({"id": again["id"], "result": {}}));
        send(outgoing, &json!({"method": "warning", "params": params}));
        // An event that the process sent after its response also follows it here.
        assert_eq!(scene.client.next().await["id"], request);
        assert_eq!(scene.client.next().await["method"], "warning");
    }
    scene.end().await;
}

#[tokio::test]
async fn a_link_ends_with_its_client() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.client.disconnect().await.when_ended().await;
    assert!(scene.peer.incoming.next().await.is_none());
    assert!(scene.accepted.try_recv().is_err(), "nobody came again");
    scene.second.end().await;
    scene.first.1.end().await;
}

#[tokio::test]
async fn answers_for_a_process_that_does_not_read_are_bounded() {
    let mut scene = ScriptedPeer::new(1).await;
    let id = format!("{}:0", scene.thread.as_str().expect("an id"));
    let question =
        json!({"id": id, "method": "item/tool/requestUserInput", "params": scene.params()});
    send(&scene.peer.outgoing, &question);
    assert_eq!(scene.client.next().await["id"], id);
    let long = "x".repeat(8 << 20);
    for _ in 0..10 {
        scene
            .client
            .send(&json!({"id": id, "result": {"answers": {}, "long": long}}));
    }
    // The response to this shows that all of them were read.
    scene
        .client
        .ask("account/read", json!({}))
        .await
        .expect("an account");
    let mut bytes = 0;
    scene.client.disconnect().await.when_ended().await;
    while let Some(Frame::Message(frame)) = scene.peer.incoming.next().await {
        bytes += frame.len();
    }
    assert!((8 << 20..72 << 20).contains(&bytes), "{bytes}");
    scene.second.end().await;
    scene.first.1.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_process_that_owes_a_response_counts_as_dead() {
    let mut scene = ScriptedPeer::new(1).await;
    let (thread, params) = (scene.thread.clone(), scene.params());
    let request = scene.client.request("turn/start", turn(&thread));
    next_request(&mut scene.peer, "turn/start").await;
    // A process that answers the probe is waited for.
    for _ in 0..3 {
        answer(&mut scene.peer, "thread/loaded/list", json!({"data": []})).await;
    }
    next_request(&mut scene.peer, "thread/loaded/list").await;
    drop(scene.accepted);
    let Some(Frame::Message(frame)) = scene.client.connection.incoming.next().await else {
        panic!("a message, not the end");
    };
    let refused: Value = serde_json::from_slice(&frame).expect("JSON");
    assert_eq!(refused["id"], request);
    assert_eq!(
        refused["error"]["data"]["errorInfo"], "owner_lost",
        "{refused}"
    );
    // It is alive, and accepts no connections.
    assert_eq!(
        next_notification(&mut scene.client).await.0,
        "thread/closed"
    );
    let refused_resume = scene
        .client
        .ask("thread/resume", params)
        .await
        .expect_err("a refusal");
    assert_eq!(refused_resume["data"]["errorInfo"], "owned_elsewhere");
    scene.second.end().await;
    scene.first.1.end().await;
}
