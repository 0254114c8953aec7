//! What threads ask of clients, and what clients answer.

use raddle_agent::Threads;
use raddle_core::{
    Admission, Ask, AskCommand, CallTool, Command, CommandRun, ItemBody, ThreadId, ToolCall,
};
use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::TestClient;
use crate::player::Stage;
use crate::script;

/// A server, and the threads behind it.
fn opened(stage: &Stage) -> (Server, Threads) {
    let mut kept = None;
    let server = Server::open(stage.options(), |ground| {
        let threads = script::threads(&["hel…"])(ground);
        kept = Some(threads.clone());
        threads
    });
    (server.unwrap(), kept.unwrap())
}

/// A thread whose turn runs.
async fn running(client: &mut TestClient) -> ThreadId {
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "item/agentMessage/delta" {}
    thread.as_str().unwrap().parse().unwrap()
}

/// The model wants to run a command for which someone must say yes.
async fn wants(threads: &Threads, thread: ThreadId) {
    let command = "rm -rf build".to_owned();
    let body: CommandRun = serde_json::from_value(json!({"command": command, "cwd": "/"})).unwrap();
    let call = CallTool {
        call: 1,
        item: "i1".into(),
        body: ItemBody::Command(body),
        asked: ToolCall {
            id: "c1".to_owned(),
            tool: "shell".to_owned(),
            arguments: json!({"command": command}).to_string(),
            freeform: false,
            alone: false,
        },
        admission: Admission::Ask {
            ask: Ask::Command(AskCommand {
                command,
                cwd: "/".to_owned(),
                ..AskCommand::default()
            }),
            expires_at: None,
        },
        ruling: None,
        approve_on_timeout: false,
    };
    let (reply, answer) = oneshot::channel();
    let command = Command::CallTool(Box::new(call));
    let handle = threads.get(thread).await.expect("the thread");
    handle
        .send_command(command, |it| drop(reply.send(it)))
        .await;
    answer.await.unwrap().expect("a tool");
}

/// Hears a question, and returns it.
async fn asked(client: &mut TestClient) -> Value {
    let status = client.next().await;
    let flags = json!(["waitingOnApproval"]);
    assert_eq!(status["params"]["status"]["activeFlags"], flags);
    assert_eq!(client.next().await["params"]["item"]["id"], "i1");
    client.next().await
}

/// What is heard, in words.
fn in_words(heard: &Value) -> String {
    let method = heard["method"].as_str().unwrap_or_default();
    match heard["params"]["item"]["status"].as_str() {
        Some(status) => format!("{method} {status}"),
        None => method.to_owned(),
    }
}

#[tokio::test]
async fn an_answer_counts_by_what_it_says() {
    const NO: [&str; 3] = [
        "serverRequest/resolved",
        "thread/status/changed",
        "item/completed declined",
    ];
    const FAILED: [&str; 3] = [NO[0], NO[1], "item/completed failed"];
    const END: [&str; 6] = [
        NO[0],
        NO[1],
        NO[2],
        "item/completed",
        "thread/status/changed",
        "turn/completed",
    ];
    for (answer, words) in [
        (json!({"result": {"decision": "accept"}}), &NO[..2]),
        (
            json!({"result": {"decision": "acceptForSession"}}),
            &NO[..2],
        ),
        (json!({"result": {"decision": "decline"}}), &NO[..]),
        (json!({"result": {"decision": "cancel"}}), &END[..]),
        (json!({"result": {"decision": "perhaps"}}), &FAILED[..]),
        (json!({"result": {}}), &FAILED[..]),
        (
            json!({"error": {"code": -32601, "message": "no"}}),
            &FAILED[..],
        ),
    ] {
        let stage = Stage::new();
        let (mut server, threads) = opened(&stage);
        let mut client = TestClient::connect(&mut server).await;
        let thread = running(&mut client).await;
        wants(&threads, thread).await;
        let question = asked(&mut client).await;
        assert_eq!(question["method"], "item/commandExecution/requestApproval");
        assert_eq!(question["params"]["command"], "rm -rf build");
        assert_eq!(question["id"], format!("{thread}:0"));
        let mut answer = answer.clone();
        answer["id"] = question["id"].clone();
        client.send(&answer);
        for word in words {
            let heard = client.next().await;
            assert_eq!(in_words(&heard), *word, "{answer} {heard}");
        }
        // A second answer changes nothing.
        client.send(&answer);
        client.ask("account/read", json!({})).await.expect("served");
    }
}

/// Only who was asked may answer, and what answers nothing is ignored.
#[tokio::test]
async fn an_answer_from_elsewhere_does_not_count() {
    let stage = Stage::new();
    let (mut server, threads) = opened(&stage);
    let stranger = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    wants(&threads, thread).await;
    let question = asked(&mut client).await;
    let yes = json!({"id": question["id"], "result": {"decision": "accept"}});
    stranger.send(&yes);
    for id in [
        json!(0),
        json!("0"),
        json!("a:b"),
        json!(format!("{thread}:7")),
    ] {
        client.send(&json!({"id": id, "result": {"decision": "accept"}}));
    }
    // Whatever came of these has come by now.
    let looked = threads.get(thread).await.expect("the thread");
    for _ in 0..10 {
        client.ask("account/read", json!({})).await.expect("served");
        let open = looked.inspect(|thread| thread.requests().count()).await;
        assert_eq!(open, Ok(1));
    }
    client.send(&yes);
    let resolved = client.next().await;
    assert_eq!(resolved["method"], "serverRequest/resolved");
    assert_eq!(resolved["params"]["requestId"], question["id"]);
    assert_eq!(client.next().await["method"], "thread/status/changed");
}

/// A question outlives who was asked: whoever comes next gets it under the same id.
#[tokio::test]
async fn whoever_comes_later_is_asked_too() {
    let stage = Stage::new();
    let (mut server, threads) = opened(&stage);
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    wants(&threads, thread).await;
    let question = asked(&mut client).await;
    client.leave().await.when_ended().await;

    let mut other = TestClient::connect(&mut server).await;
    let params = json!({"threadId": thread, "excludeTurns": true});
    let resumed = other.ask("thread/resume", params).await.expect("a thread");
    let flags = json!(["waitingOnApproval"]);
    assert_eq!(resumed["thread"]["status"]["activeFlags"], flags);
    for word in [
        "thread/goal/cleared",
        "item/started",
        "item/agentMessage/delta",
        "item/started",
    ] {
        assert_eq!(other.next().await["method"], word);
    }
    let again = other.next().await;
    assert_eq!(again, question);
    other.send(&json!({"id": again["id"], "result": {"decision": "accept"}}));
    assert_eq!(other.next().await["method"], "serverRequest/resolved");
    assert_eq!(other.next().await["method"], "thread/status/changed");
}

/// An observer hears who answered and what. It is not asked, its answer does not count, and it changes nothing.
#[tokio::test]
async fn an_observer_only_looks() {
    let stage = Stage::new();
    let (mut server, threads) = opened(&stage);
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    let wishes = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let mut observer =
        TestClient::introduced(&mut server, ConnectionLimits::default(), wishes).await;
    let params = json!({"threadId": thread, "excludeTurns": true, "model": "other"});
    let resumed = observer.ask("thread/resume", params).await.expect("heard");
    assert_eq!(resumed["model"], "");
    for word in [
        "thread/goal/cleared",
        "item/started",
        "item/agentMessage/delta",
    ] {
        assert_eq!(observer.next().await["method"], word);
    }
    for method in ["turn/interrupt", "thread/name/set", "thread/delete"] {
        let params = json!({"threadId": thread});
        let error = observer.ask(method, params).await.expect_err("no");
        assert_eq!(error["data"]["errorInfo"], "observer", "{method}");
    }

    wants(&threads, thread).await;
    let question = asked(&mut client).await;
    let yes = json!({"id": question["id"], "result": {"decision": "accept"}});
    observer.send(&yes);
    for word in ["thread/status/changed", "item/started"] {
        assert_eq!(observer.next().await["method"], word);
    }
    // What came of its answer has come by now.
    let listed = json!({"threadId": thread});
    let listed = observer.ask("thread/read", listed).await;
    listed.expect("a look");
    let looked = threads.get(thread).await.expect("the thread");
    let open = looked.inspect(|thread| thread.requests().count()).await;
    assert_eq!(open, Ok(1));

    client.send(&json!({"id": question["id"], "result": {"decision": "decline"}}));
    for one in [&mut client, &mut observer] {
        let resolved = one.next().await;
        assert_eq!(resolved["method"], "serverRequest/resolved");
        assert_eq!(resolved["params"]["decision"], "decline");
        assert_eq!(resolved["params"]["resolvedBy"], "test");
    }
}
