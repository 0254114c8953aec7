use raddle_rpc::{ConnectionLimits, memory};

use super::super::{Form, FormAnswer, FormField, TurnRequest};
use super::*;

/// Asks for one value and returns it; a cancelled call reports nothing.
struct Echo;

impl TurnRunner for Echo {
    async fn run(&self, request: TurnRequest, context: CallContext) -> TurnReport {
        let form = Form {
            message: request.prompt,
            fields: vec![FormField {
                name: "value".to_owned(),
                title: "Value".to_owned(),
                choices: Vec::new(),
            }],
        };
        context.report_step("asks");
        let answer = tokio::select! {
            answer = context.ask(&form) => answer,
            () = context.cancelled() => FormAnswer::Cancelled,
        };
        let is_error = !matches!(answer, FormAnswer::Submitted(_));
        TurnReport {
            thread_id: None,
            text: format!("{answer:?}"),
            is_error,
        }
    }
}

/// The client's end of a connection.
struct TestClient(Connection);

impl TestClient {
    fn send(&self, message: Value) {
        self.0.outgoing.send(message.to_string().into());
    }

    async fn next(&mut self) -> Option<Value> {
        match self.0.incoming.next().await? {
            Frame::Message(bytes) => serde_json::from_slice(&bytes).ok(),
            other => panic!("{other:?}"),
        }
    }
}

/// Starts a server, and initializes it.
async fn connected() -> (TestClient, tokio::task::JoinHandle<()>) {
    let (near, far) = memory(ConnectionLimits::default());
    let server = tokio::spawn(serve(far, Echo, std::future::pending()));
    let mut client = TestClient(near);
    client.send(json!({ "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
    } }));
    let answer = client.next().await.expect("an answer");
    assert_eq!(answer["id"], "i", "{answer}");
    (client, server)
}

fn call(id: i64) -> Value {
    json!({ "id": id, "method": "tools/call", "params": {
        "name": "codex", "arguments": { "prompt": "Which?" }, "_meta": { "progressToken": "p" },
    } })
}

#[tokio::test]
async fn a_call_asks_and_ends() {
    let (mut client, _server) = connected().await;
    client.send(call(1));
    let step = client.next().await.expect("progress");
    assert_eq!(
        step["params"],
        json!({ "progressToken": "p", "progress": 1, "message": "asks" })
    );
    let form = client.next().await.expect("a form");
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(
        form["params"]["requestedSchema"]["required"],
        json!(["value"])
    );
    client.send(json!({ "id": form["id"], "result": {
        "action": "accept", "content": { "value": "red" },
    } }));
    let result = client.next().await.expect("a result")["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("red"), "{result}");
}

#[tokio::test]
async fn a_cancelled_call_has_no_response_and_withdraws_its_form() {
    let (mut client, server) = connected().await;
    client.send(call(1));
    let _step = client.next().await;
    let form = client.next().await.expect("a form");
    // A second request with the id of a running one.
    client.send(call(1));
    let refused = client.next().await.expect("a refusal");
    assert_eq!(refused["error"]["code"], code::INVALID_REQUEST, "{refused}");
    client.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    let withdrawn = client.next().await.expect("a notification");
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], form["id"]);
    client.0.outgoing.close(Close::NORMAL);
    assert_eq!(client.next().await, None);
    server.await.expect("no panic");
}

#[tokio::test]
async fn the_end_of_the_connection_cancels_the_calls() {
    let (mut client, server) = connected().await;
    client.send(call(1));
    let _step = client.next().await;
    let _form = client.next().await;
    client.0.outgoing.close(Close::NORMAL);
    server.await.expect("no panic");
}
