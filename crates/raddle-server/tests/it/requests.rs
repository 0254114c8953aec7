//! Requests of threads to clients, and the answers.

use raddle_agent::Threads;
use raddle_core::{
    Admission, Ask, AskCommand, CallTool, Command, CommandRun, ItemBody, ThreadId, ToolCall,
};
use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::TestClient;
use crate::player::Harness;
use crate::script;

/// Opens a server, and returns its threads too.
fn opened(harness: &Harness) -> (Server, Threads) {
    let mut threads_handle = None;
    let server = Server::open(harness.options(), |deps| {
        let threads = script::threads(&["hel…"])(deps);
        threads_handle = Some(threads.clone());
        threads
    });
    (server.unwrap(), threads_handle.unwrap())
}

/// Starts a thread with a running turn.
async fn running(client: &mut TestClient) -> ThreadId {
    let thread = client.start_thread().await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    while client.next().await["method"] != "item/agentMessage/delta" {}
    thread.as_str().unwrap().parse().unwrap()
}

/// Makes the model call a command that needs approval.
async fn call_command(threads: &Threads, thread: ThreadId) {
    let command = "rm -rf build".to_owned();
    let body: CommandRun = serde_json::from_value(json!({"command": command, "cwd": "/"})).unwrap();
    let call = CallTool {
        call: 1,
        item: "i1".into(),
        body: ItemBody::Command(body),
        tool_call: ToolCall {
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

/// Receives an approval request, and returns it.
async fn approval_request(client: &mut TestClient) -> Value {
    let status = client.next().await;
    let flags = json!(["waitingOnApproval"]);
    assert_eq!(status["params"]["status"]["activeFlags"], flags);
    assert_eq!(client.next().await["params"]["item"]["id"], "i1");
    client.next().await
}

/// Renders a message as text.
fn rendered(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    match message["params"]["item"]["status"].as_str() {
        Some(status) => format!("{method} {status}"),
        None => method.to_owned(),
    }
}

#[tokio::test]
async fn each_decision_has_its_effect() {
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
    for (answer, expected) in [
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
        let harness = Harness::new();
        let (mut server, threads) = opened(&harness);
        let mut client = TestClient::connect(&mut server).await;
        let thread = running(&mut client).await;
        call_command(&threads, thread).await;
        let request = approval_request(&mut client).await;
        assert_eq!(request["method"], "item/commandExecution/requestApproval");
        assert_eq!(request["params"]["command"], "rm -rf build");
        assert_eq!(request["id"], format!("{thread}:0"));
        let mut answer = answer.clone();
        answer["id"] = request["id"].clone();
        client.send(&answer);
        for expected_message in expected {
            let message = client.next().await;
            assert_eq!(rendered(&message), *expected_message, "{answer} {message}");
        }
        // A second answer changes nothing.
        client.send(&answer);
        client.ask("account/read", json!({})).await.expect("served");
    }
}

/// A client without extensions gets integer ids, and may answer with them.
#[tokio::test]
async fn a_client_without_extensions_gets_integer_ids() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let mut client = TestClient::connect_without_extensions(&mut server).await;
    let thread = running(&mut client).await;
    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    assert_eq!(request["method"], "item/commandExecution/requestApproval");
    assert!(request["id"].is_i64(), "{request}");
    client.send(&json!({"id": request["id"], "result": {"decision": "accept"}}));
    let resolved = client.next().await;
    assert_eq!(resolved["method"], "serverRequest/resolved");
    assert_eq!(resolved["params"]["requestId"], request["id"]);
    assert_eq!(resolved["params"]["decision"], "accept");
}

/// The integer of a request is the same on a later connection, and names it only on connections
/// that received it.
#[tokio::test]
async fn an_integer_id_outlives_its_connection() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let mut client = TestClient::connect_without_extensions(&mut server).await;
    let thread = running(&mut client).await;
    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    client.disconnect().await.when_ended().await;

    let mut other = TestClient::connect_without_extensions(&mut server).await;
    let approval = json!({"id": request["id"], "result": {"decision": "accept"}});
    other.send(&approval);
    other.ask("account/read", json!({})).await.expect("served");
    let handle = threads.get(thread).await.expect("the thread");
    let open = handle.inspect(|thread| thread.requests().count()).await;
    assert_eq!(open, Ok(1), "the request was not sent on this connection");

    let params = json!({"threadId": thread, "excludeTurns": true});
    other.ask("thread/resume", params).await.expect("a thread");
    let repeated = loop {
        let message = other.next().await;
        if message.get("id").is_some() {
            break message;
        }
    };
    assert_eq!(repeated["id"], request["id"]);
    other.send(&approval);
    let resolved = other.next().await;
    assert_eq!(resolved["method"], "serverRequest/resolved");
    assert_eq!(resolved["params"]["requestId"], request["id"]);
    // A second answer changes nothing.
    other.send(&approval);
    assert_eq!(other.next().await["method"], "thread/status/changed");
    other.ask("account/read", json!({})).await.expect("served");
}

/// An answer is not parsed for its id: one that nests too deep declines, as with a string id.
#[tokio::test]
async fn a_deep_answer_with_an_integer_id_is_not_lost() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let mut client = TestClient::connect_without_extensions(&mut server).await;
    let thread = running(&mut client).await;
    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    let deep = (0..200).fold(json!(0), |inner, _| json!([inner]));
    client.send(&json!({"id": request["id"], "result": deep}));
    for expected in [
        "serverRequest/resolved",
        "thread/status/changed",
        "item/completed failed",
    ] {
        assert_eq!(rendered(&client.next().await), expected);
    }
}

/// Only a subscriber may answer, and answers to unknown requests are ignored.
#[tokio::test]
async fn answers_from_other_clients_are_ignored() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let unsubscribed = TestClient::connect(&mut server).await;
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    let approval = json!({"id": request["id"], "result": {"decision": "accept"}});
    unsubscribed.send(&approval);
    for id in [
        json!(0),
        json!("0"),
        json!("a:b"),
        json!(format!("{thread}:7")),
    ] {
        client.send(&json!({"id": id, "result": {"decision": "accept"}}));
    }
    // Any effect of these would be visible by now.
    let handle = threads.get(thread).await.expect("the thread");
    for _ in 0..10 {
        client.ask("account/read", json!({})).await.expect("served");
        let open = handle.inspect(|thread| thread.requests().count()).await;
        assert_eq!(open, Ok(1));
    }
    client.send(&approval);
    let resolved = client.next().await;
    assert_eq!(resolved["method"], "serverRequest/resolved");
    assert_eq!(resolved["params"]["requestId"], request["id"]);
    assert_eq!(client.next().await["method"], "thread/status/changed");
}

/// A request outlives its client: the next subscriber receives it under the same id.
#[tokio::test]
async fn later_subscribers_receive_the_pending_request() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    client.disconnect().await.when_ended().await;

    let mut other = TestClient::connect(&mut server).await;
    let params = json!({"threadId": thread, "excludeTurns": true});
    let resumed = other.ask("thread/resume", params).await.expect("a thread");
    let flags = json!(["waitingOnApproval"]);
    assert_eq!(resumed["thread"]["status"]["activeFlags"], flags);
    for method in [
        "thread/goal/cleared",
        "item/started",
        "item/agentMessage/delta",
        "item/started",
    ] {
        assert_eq!(other.next().await["method"], method);
    }
    let repeated = other.next().await;
    assert_eq!(repeated, request);
    other.send(&json!({"id": repeated["id"], "result": {"decision": "accept"}}));
    assert_eq!(other.next().await["method"], "serverRequest/resolved");
    assert_eq!(other.next().await["method"], "thread/status/changed");
}

/// An observer receives who answered and what. It receives no request, its answer does not count,
/// and it changes nothing.
#[tokio::test]
async fn an_observer_only_reads() {
    let harness = Harness::new();
    let (mut server, threads) = opened(&harness);
    let mut client = TestClient::connect(&mut server).await;
    let thread = running(&mut client).await;
    let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let mut observer =
        TestClient::connect_with(&mut server, ConnectionLimits::default(), capabilities).await;
    let params = json!({"threadId": thread, "excludeTurns": true, "model": "other"});
    let resumed = observer.ask("thread/resume", params).await.expect("heard");
    assert_eq!(resumed["model"], "");
    for method in [
        "thread/goal/cleared",
        "item/started",
        "item/agentMessage/delta",
    ] {
        assert_eq!(observer.next().await["method"], method);
    }
    for method in ["turn/interrupt", "thread/name/set", "thread/delete"] {
        let params = json!({"threadId": thread});
        let error = observer.ask(method, params).await.expect_err("no");
        assert_eq!(error["data"]["errorInfo"], "observer", "{method}");
    }

    call_command(&threads, thread).await;
    let request = approval_request(&mut client).await;
    let approval = json!({"id": request["id"], "result": {"decision": "accept"}});
    observer.send(&approval);
    for method in ["thread/status/changed", "item/started"] {
        assert_eq!(observer.next().await["method"], method);
    }
    // Any effect of its answer would be visible by now.
    let listed = json!({"threadId": thread});
    let listed = observer.ask("thread/read", listed).await;
    listed.expect("a look");
    let handle = threads.get(thread).await.expect("the thread");
    let open = handle.inspect(|thread| thread.requests().count()).await;
    assert_eq!(open, Ok(1));

    client.send(&json!({"id": request["id"], "result": {"decision": "decline"}}));
    for receiver in [&mut client, &mut observer] {
        let resolved = receiver.next().await;
        assert_eq!(resolved["method"], "serverRequest/resolved");
        assert_eq!(resolved["params"]["decision"], "decline");
        assert_eq!(resolved["params"]["resolvedBy"], "test");
    }
}
