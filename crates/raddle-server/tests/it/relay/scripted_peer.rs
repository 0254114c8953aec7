use raddle_rpc::{Connection, ConnectionLimits, Frame, Outgoing, memory};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{PeerPair, PeerServer, numbers, turn, until};
use crate::client::TestClient;

/// A process that has a thread and says what the test wants, and one whose client uses it.
struct ScriptedPeer {
    pair: PeerPair,
    thread: Value,
    /// The last record of the thread.
    head: u64,
    client: TestClient,
    /// Where the played process is found, if it is.
    came: mpsc::UnboundedReceiver<Connection>,
    afar: Connection,
    /// Whose thread it is. It says nothing.
    first: (TestClient, PeerServer),
    second: PeerServer,
}

impl ScriptedPeer {
    /// The client has resumed the thread, and was told as many records as this says.
    async fn new(seen: u64) -> Self {
        let pair = PeerPair::new();
        let mut first = pair.start("first", &["hello"]).await;
        let (mut guest, second) = pair.start("second", &["hello again"]).await;
        let thread = first.0.start_thread().await;
        first.0.request("turn/start", turn(&thread));
        let heard = until(&mut first.0, "turn/completed").await;
        let head = numbers(&heard).pop().expect("a number");
        let (door, mut came) = mpsc::unbounded_channel();
        pair.enter("first", Some(door));
        let params = json!({"threadId": thread, "afterSeq": seen});
        let asked = guest.request("thread/resume", params);
        let mut afar = came.recv().await.expect("someone comes");
        answer(&mut afar, "initialize", json!({})).await;
        answer(&mut afar, "thread/resume", json!({"resumed": true})).await;
        let answer = guest.next().await;
        assert_eq!(
            (&answer["id"], &answer["result"]),
            (&json!(asked), &json!({"resumed": true}))
        );
        Self {
            pair,
            thread,
            head,
            client: guest,
            came,
            afar,
            first,
            second,
        }
    }

    fn params(&self) -> Value {
        json!({"threadId": self.thread})
    }

    /// The played process dies. When this returns, the thread is on its way home, and stays there until the town
    /// is lit.
    async fn dies_in_the_dark(&mut self) {
        let town = self.pair.peers.clone();
        let mut looks = town.liveness_checks.subscribe();
        let before = *looks.borrow_and_update();
        town.is_dark.send_replace(true);
        town.connections.lock().expect("the town").remove("first");
        self.afar = memory(ConnectionLimits::default()).0;
        looks.wait_for(|it| *it > before).await.expect("a look");
    }

    fn light(&self) {
        self.pair.peers.is_dark.send_replace(false);
    }

    async fn end(self) {
        self.second.end().await;
        self.first.1.end().await;
    }
}

/// The next request there, which is for this.
async fn asked(afar: &mut Connection, method: &str) -> Value {
    let Some(Frame::Message(frame)) = afar.incoming.next().await else {
        panic!("a message, not the end");
    };
    let asked: Value = serde_json::from_slice(&frame).expect("JSON");
    assert_eq!(asked["method"], method, "{asked}");
    asked
}

async fn answer(afar: &mut Connection, method: &str, result: Value) {
    let asked = asked(afar, method).await;
    say(
        &afar.outgoing,
        &json!({"id": asked["id"], "result": result}),
    );
}

fn say(outgoing: &Outgoing, message: &Value) {
    outgoing.send(message.to_string().into());
}

/// What the client is told next, and of which number.
async fn told(guest: &mut TestClient) -> (String, Option<u64>) {
    let told = guest.next().await;
    let method = told["method"].as_str();
    (method.unwrap_or("answer").to_owned(), told["seq"].as_u64())
}

#[tokio::test]
async fn who_leaves_a_thread_on_its_way_home_has_left_it() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.dies_in_the_dark().await;
    let params = scene.params();
    let asked = scene.client.request("thread/unsubscribe", params.clone());
    scene.light();
    let mut told = scene.client.next().await;
    while told["id"] != asked {
        told = scene.client.next().await;
    }
    assert_eq!(told["result"], json!({"status": "unsubscribed"}));
    // No seat is left in which nobody sits.
    let again = scene.client.ask("thread/unsubscribe", params).await;
    assert_eq!(again, Ok(json!({"status": "notSubscribed"})));
    scene.end().await;
}

#[tokio::test]
async fn who_comes_back_to_a_thread_on_its_way_home_is_told_nothing_twice() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.dies_in_the_dark().await;
    let (thread, head) = (scene.thread.clone(), scene.head);
    let params = json!({"threadId": thread, "afterSeq": head});
    let asked = scene.client.request("thread/resume", params);
    scene.light();
    let mut heard = vec![scene.client.next().await];
    while heard[heard.len() - 1]["id"] != asked {
        heard.push(scene.client.next().await);
    }
    let answer = heard.pop().expect("an answer");
    assert_eq!(answer["result"]["thread"]["id"], thread, "{answer}");
    // It was told what it had missed before it came back.
    let mut seen = numbers(&heard);
    assert_eq!(seen.last(), Some(&head));
    // And goes on hearing, once.
    scene.client.request("turn/start", turn(&thread));
    let heard = until(&mut scene.client, "turn/completed").await;
    seen.extend(numbers(&heard));
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    scene.end().await;
}

#[tokio::test]
async fn a_number_that_is_lost_with_its_process_ends_the_hearing() {
    let mut scene = ScriptedPeer::new(1).await;
    let lost =
        json!({"method": "warning", "params": scene.params(), "emittedAtMs": 1, "seq": 999_999});
    say(&scene.afar.outgoing, &lost);
    assert_eq!(
        told(&mut scene.client).await,
        ("warning".to_owned(), Some(999_999))
    );
    scene.dies_in_the_dark().await;
    scene.light();
    assert_eq!(told(&mut scene.client).await.0, "thread/closed");
    let params = scene.params();
    let gone = scene.client.ask("thread/unsubscribe", params).await;
    assert_eq!(gone, Ok(json!({"status": "notSubscribed"})));
    scene.end().await;
}

#[tokio::test]
async fn a_process_that_no_longer_has_a_thread_says_nothing_of_it() {
    let mut scene = ScriptedPeer::new(1).await;
    // It leaves the thread, and lives on.
    scene
        .pair
        .peers
        .connections
        .lock()
        .expect("the town")
        .remove("first");
    let params = scene.params();
    say(
        &scene.afar.outgoing,
        &json!({"method": "thread/closed", "params": params}),
    );
    until(&mut scene.client, "turn/completed").await;
    for method in ["thread/archived", "warning"] {
        say(
            &scene.afar.outgoing,
            &json!({"method": method, "params": params, "seq": 2}),
        );
    }
    // The client hears of it here, and of nothing else.
    let thread = scene.thread.clone();
    scene.client.request("turn/start", turn(&thread));
    let heard = until(&mut scene.client, "turn/completed").await;
    let is_stale = |it: &&Value| it["method"] == "thread/archived" || it["method"] == "warning";
    assert_eq!(heard.iter().find(is_stale), None);
    scene.end().await;
}

#[tokio::test]
async fn a_way_ends_with_its_client() {
    let mut scene = ScriptedPeer::new(1).await;
    scene.client.leave().await.when_ended().await;
    assert!(scene.afar.incoming.next().await.is_none());
    assert!(scene.came.try_recv().is_err(), "nobody came again");
    scene.second.end().await;
    scene.first.1.end().await;
}

#[tokio::test]
async fn answers_for_a_process_that_does_not_read_are_bounded() {
    let mut scene = ScriptedPeer::new(1).await;
    let id = format!("{}:0", scene.thread.as_str().expect("an id"));
    let question =
        json!({"id": id, "method": "item/tool/requestUserInput", "params": scene.params()});
    say(&scene.afar.outgoing, &question);
    assert_eq!(scene.client.next().await["id"], id);
    let long = "x".repeat(8 << 20);
    for _ in 0..10 {
        scene
            .client
            .send(&json!({"id": id, "result": {"answers": {}, "long": long}}));
    }
    // An answer to this shows that all of them were read.
    scene
        .client
        .ask("account/read", json!({}))
        .await
        .expect("an account");
    let mut bytes = 0;
    scene.client.leave().await.when_ended().await;
    while let Some(Frame::Message(frame)) = scene.afar.incoming.next().await {
        bytes += frame.len();
    }
    assert!((8 << 20..72 << 20).contains(&bytes), "{bytes}");
    scene.second.end().await;
    scene.first.1.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_owes_an_answer_and_is_silent_is_taken_for_gone() {
    let mut scene = ScriptedPeer::new(1).await;
    let (thread, params) = (scene.thread.clone(), scene.params());
    let began = scene.client.request("turn/start", turn(&thread));
    asked(&mut scene.afar, "turn/start").await;
    // One that says that it is there is waited for.
    for _ in 0..3 {
        answer(&mut scene.afar, "thread/loaded/list", json!({"data": []})).await;
    }
    asked(&mut scene.afar, "thread/loaded/list").await;
    drop(scene.came);
    let Some(Frame::Message(frame)) = scene.client.connection.incoming.next().await else {
        panic!("a message, not the end");
    };
    let refused: Value = serde_json::from_slice(&frame).expect("JSON");
    assert_eq!(refused["id"], began);
    assert_eq!(
        refused["error"]["data"]["errorInfo"], "owner_lost",
        "{refused}"
    );
    // It is alive, and does not let anyone in.
    assert_eq!(told(&mut scene.client).await.0, "thread/closed");
    let elsewhere = scene
        .client
        .ask("thread/resume", params)
        .await
        .expect_err("a refusal");
    assert_eq!(elsewhere["data"]["errorInfo"], "owned_elsewhere");
    scene.second.end().await;
    scene.first.1.end().await;
}
