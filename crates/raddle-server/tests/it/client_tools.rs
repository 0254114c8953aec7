//! Tools that clients offer with `thread/start`, and run on `item/tool/call`.

use std::sync::Arc;

use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;
use crate::script;

/// Returns a tool, and one in a namespace.
fn tools() -> Value {
    let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    json!([look, {"type": "namespace", "name": "ns", "description": "A group.", "tools": [look]}])
}

/// Starts a thread with tools, and receives its notification.
async fn start(client: &mut TestClient) -> Value {
    let params = json!({"dynamicTools": tools()});
    let response = client.ask("thread/start", params).await;
    let id = response.expect("a thread")["thread"]["id"].take();
    assert_eq!(client.next().await["method"], "thread/started");
    id
}

async fn say(client: &mut TestClient, thread: &Value) -> Value {
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    let response = client.ask("turn/start", params).await.expect("a turn");
    response["turn"]["id"].clone()
}

/// Returns the messages up to and including a method.
async fn until(client: &mut TestClient, method: &str) -> Vec<Value> {
    let mut messages = vec![client.next().await];
    while messages.last().unwrap()["method"] != method {
        messages.push(client.next().await);
    }
    messages
}

/// Returns the completed tool calls among the messages, as text.
fn calls(messages: &[Value]) -> Vec<String> {
    let completed = messages
        .iter()
        .filter(|it| it["method"] == "item/completed");
    let items = completed.map(|it| &it["params"]["item"]);
    let calls = items.filter(|it| it["type"] == "dynamicToolCall");
    let word = |it: &Value| it.as_str().unwrap_or("-").to_owned();
    let rendered = calls.map(|it| {
        let text = word(&it["contentItems"][0]["text"]);
        let success = &it["success"];
        format!(
            "{} {} {success}: {text}",
            word(&it["tool"]),
            word(&it["status"])
        )
    });
    rendered.collect()
}

/// Returns the last text of the agent.
fn answer(messages: &[Value]) -> &str {
    let turn = &messages.last().unwrap()["params"]["turn"];
    turn["items"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_call_goes_to_the_client_and_its_answer_to_the_model() {
    let mut harness = Harness::new();
    harness.says = vec!["calls ns__look {\"at\": 1}".to_owned(), "heard".to_owned()];
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let thread = start(&mut client).await;
    let turn = say(&mut client, &thread).await;
    let mut messages = until(&mut client, "item/tool/call").await;
    let request = messages.pop().unwrap();
    let item = &messages
        .iter()
        .rfind(|it| it["method"] == "item/started")
        .unwrap()["params"]["item"];
    for (member, expected) in [
        ("type", json!("dynamicToolCall")),
        ("tool", json!("look")),
        ("namespace", json!("ns")),
        ("arguments", json!({"at": 1})),
        ("status", json!("inProgress")),
        ("success", json!(null)),
    ] {
        assert_eq!(item[member], expected, "{member}");
    }
    let expected_params = json!({
        "threadId": thread, "turnId": turn, "callId": "call-0", "namespace": "ns", "tool": "look", "arguments": {"at": 1},
    });
    assert_eq!(request["params"], expected_params);
    // The wire has no status for waiting for a client, only that the thread is active.
    let read = client.ask("thread/read", json!({"threadId": thread})).await;
    let status = read.expect("a thread")["thread"]["status"].take();
    assert_eq!(status, json!({"type": "active", "activeFlags": []}));

    let content = json!([{"type": "inputText", "text": "a loom"}, {"type": "inputText", "text": "and a raddle"}]);
    let answer_message =
        json!({"id": request["id"], "result": {"contentItems": content, "success": true}});
    client.send(&answer_message);
    // A second answer changes nothing.
    client.send(&answer_message);
    let messages = until(&mut client, "turn/completed").await;
    let item = &messages[0]["params"]["item"];
    assert_eq!(
        messages[0]["method"], "item/completed",
        "no other word comes first"
    );
    assert_eq!(item["contentItems"], content);
    assert_eq!(
        (&item["success"], &item["status"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(item["durationMs"], 0);
    assert_eq!(answer(&messages), "a loom\nand a raddle");
}

#[tokio::test]
async fn every_call_has_a_result() {
    let cannot = "The request failed: ";
    let long = "x".repeat((1 << 20) + 1);
    let text = json!([{"type": "inputText", "text": long}]);
    let sound = json!([{"type": "inputAudio", "audioUrl": long}]);
    let unknown = json!([{"type": "inputHologram", "of": long}]);
    let result_with =
        |content: Value| Some(json!({"result": {"contentItems": content, "success": true}}));
    for (call, result, expected_call, expected_text) in [
        (
            "nothing {}",
            None,
            "nothing failed false: There is no tool named nothing.",
            "There is no tool",
        ),
        (
            "look {",
            None,
            "look failed false: The tool look was not called",
            "they are no JSON",
        ),
        (
            "look {}",
            Some(
                json!({"result": {"contentItems": [{"type": "inputText", "text": "gone"}], "success": false}}),
            ),
            "look failed false: gone",
            "gone",
        ),
        (
            "look {}",
            Some(json!({"error": {"code": -32601, "message": "not mine"}})),
            "look failed false: The request failed: not mine",
            "not mine",
        ),
        (
            "look {}",
            Some(json!({"result": {}})),
            cannot,
            "the answer cannot be read",
        ),
        (
            "look {}",
            result_with(text),
            cannot,
            "at most 1048576 are taken",
        ),
        (
            "look {}",
            result_with(sound),
            cannot,
            "at most 1048576 are taken",
        ),
        (
            "look {}",
            result_with(unknown),
            cannot,
            "at most 1048576 are taken",
        ),
        (
            "look {}",
            Some(
                json!({"result": {"contentItems": [{"type": "inputHologram", "of": 1}], "success": true}}),
            ),
            "look completed true: -",
            "",
        ),
    ] {
        let mut harness = Harness::new();
        harness.says = vec![format!("calls {call}"), "heard".to_owned()];
        let mut server = harness.open();
        let mut client = TestClient::connect_experimental(&mut server).await;
        let thread = start(&mut client).await;
        say(&mut client, &thread).await;
        if let Some(mut result) = result {
            let request = until(&mut client, "item/tool/call").await.pop().unwrap();
            result["id"] = request["id"].clone();
            client.send(&result);
        }
        let messages = until(&mut client, "turn/completed").await;
        assert_eq!(
            messages.last().unwrap()["params"]["turn"]["status"],
            "completed"
        );
        let found_calls = calls(&messages);
        assert!(
            found_calls.len() == 1 && found_calls[0].contains(expected_call),
            "{call}: {found_calls:?}"
        );
        assert!(
            answer(&messages).contains(expected_text),
            "{call}: {}",
            answer(&messages)
        );
    }
}

#[tokio::test]
async fn calls_of_one_answer_are_asked_side_by_side() {
    let mut harness = Harness::new();
    harness.says = vec![
        "calls look {\"n\": 1}\ncalls ns__look {\"n\": 2}".to_owned(),
        "heard".to_owned(),
    ];
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let first = until(&mut client, "item/tool/call").await.pop().unwrap();
    let second = until(&mut client, "item/tool/call").await.pop().unwrap();
    for request in [&second, &first] {
        let text = format!("saw {}", request["params"]["arguments"]["n"]);
        let content = json!([{"type": "inputText", "text": text}]);
        client.send(
            &json!({"id": request["id"], "result": {"contentItems": content, "success": true}}),
        );
        // In sequence, so that the order is known.
        client.next().await;
    }
    let messages = until(&mut client, "turn/completed").await;
    assert_eq!(answer(&messages), "saw 2 · saw 1");
}

/// Without a client the call waits. A client that subscribes receives it, under the same id, also
/// from the next process.
#[tokio::test]
async fn a_call_waits_for_a_client_to_subscribe() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says: &'static [&str]| {
        let threads = script::threads_of(journal.clone(), says);
        Server::open(harness.options(), threads).expect("a server")
    };
    let mut first = open(&["calls look {}"]);
    let mut client = TestClient::connect_experimental(&mut first).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let request = until(&mut client, "item/tool/call").await.pop().unwrap();
    client.disconnect().await.when_ended().await;
    let mut subscribers = Vec::new();
    let mut second = open(&["heard"]);
    for server in [&mut first, &mut second] {
        let mut other = TestClient::connect(server).await;
        let params = json!({"threadId": thread, "excludeTurns": true});
        other.ask("thread/resume", params).await.expect("a thread");
        assert_eq!(
            until(&mut other, "item/tool/call").await.pop(),
            Some(request.clone())
        );
        subscribers.push(other);
    }
    let mut last = subscribers.pop().unwrap();
    let content = json!([{"type": "inputText", "text": "late"}]);
    last.send(&json!({"id": request["id"], "result": {"contentItems": content, "success": true}}));
    let messages = until(&mut last, "turn/completed").await;
    assert_eq!(answer(&messages), "late");
}

/// A client that does not know the tool answers with an error. That does not count while another
/// client may answer.
#[tokio::test]
async fn an_error_from_one_client_does_not_fail_a_call_for_others() {
    for others_can in [true, false] {
        let mut harness = Harness::new();
        harness.says = vec!["calls look {}".to_owned(), "heard".to_owned()];
        let mut server = harness.open();
        let mut owner = TestClient::connect_experimental(&mut server).await;
        let thread = start(&mut owner).await;
        let mut other = TestClient::connect_experimental(&mut server).await;
        let resume = json!({"threadId": thread});
        other.ask("thread/resume", resume).await.expect("resumed");
        say(&mut owner, &thread).await;
        let request = until(&mut other, "item/tool/call").await.pop().unwrap();
        let refusal = json!({"code": -32000, "message": "no such tool here"});
        other.send(&json!({"id": request["id"], "error": refusal}));
        // The response to a later request of the same client shows that the answer was processed.
        let read = json!({"threadId": thread});
        let id = other.request("thread/read", read);
        while other.next().await["id"] != id {}
        until(&mut owner, "item/tool/call").await;
        let (answer_message, call) = if others_can {
            let content = json!([{"type": "inputText", "text": "found"}]);
            let result = json!({"contentItems": content, "success": true});
            let message = json!({"id": request["id"], "result": result});
            (message, "look completed true: found")
        } else {
            let message = json!({"id": request["id"], "error": refusal});
            (
                message,
                "look failed false: The request failed: no such tool here",
            )
        };
        owner.send(&answer_message);
        let messages = until(&mut owner, "turn/completed").await;
        assert_eq!(calls(&messages), [call]);
    }
}

#[tokio::test]
async fn an_interrupt_cancels_the_tool_call() {
    let mut harness = Harness::new();
    harness.says = vec!["calls look {}".to_owned(), "heard".to_owned()];
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let thread = start(&mut client).await;
    let turn = say(&mut client, &thread).await;
    let request = until(&mut client, "item/tool/call").await.pop().unwrap();
    client.request(
        "turn/interrupt",
        json!({"threadId": thread, "turnId": turn}),
    );
    let messages = until(&mut client, "turn/completed").await;
    assert_eq!(
        messages.last().unwrap()["params"]["turn"]["status"],
        "interrupted"
    );
    let found_calls = calls(&messages);
    assert!(
        found_calls[0].starts_with("look failed false: The client was asked to run this"),
        "{found_calls:?}"
    );
    // A late answer is ignored, and the next turn has the result of the interrupted call.
    let content = json!([{"type": "inputText", "text": "late"}]);
    client
        .send(&json!({"id": request["id"], "result": {"contentItems": content, "success": true}}));
    say(&mut client, &thread).await;
    let messages = until(&mut client, "turn/completed").await;
    assert!(
        answer(&messages).starts_with("The client was asked to run this"),
        "{messages:?}"
    );
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let twice = json!([tools()[0], tools()[0]]);
    let refused = client
        .ask("thread/start", json!({"dynamicTools": twice}))
        .await;
    let expected = json!({"code": -32600, "message": "two tools are named `look`; give each a name of its own"});
    assert_eq!(refused, Err(expected));
}

/// A pending call stays valid; from the model's next call on, only the new tools exist.
#[tokio::test]
async fn tools_change_while_a_turn_runs() {
    let mut harness = Harness::new();
    harness.says = vec![
        "calls look {}".to_owned(),
        "calls see {}".to_owned(),
        "calls look {}".to_owned(),
        "heard".to_owned(),
    ];
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let request = until(&mut client, "item/tool/call").await.pop().unwrap();
    let see = json!({"type": "function", "name": "see", "description": "Sees.", "inputSchema": {"type": "object"}});
    let loose =
        json!({"type": "function", "name": "see", "description": "Sees.", "inputSchema": true});
    for (tools, is_accepted) in [(json!([loose]), false), (json!([see]), true)] {
        let change = json!({"threadId": thread, "dynamicTools": tools});
        let id = client.request("thread/settings/update", change);
        let mut message = client.next().await;
        while message["id"] != id {
            message = client.next().await;
        }
        assert_eq!(message.get("result").is_some(), is_accepted, "{message}");
    }
    let content = json!([{"type": "inputText", "text": "seen"}]);
    let result = json!({"contentItems": content, "success": true});
    client.send(&json!({"id": request["id"], "result": result}));
    let mut messages = until(&mut client, "item/tool/call").await;
    let second_request = messages.last().unwrap();
    assert_eq!(second_request["params"]["tool"], "see");
    client.send(&json!({"id": second_request["id"], "result": result}));
    messages.extend(until(&mut client, "turn/completed").await);
    assert_eq!(
        calls(&messages),
        [
            "look completed true: seen",
            "see completed true: seen",
            "look failed false: There is no tool named look."
        ]
    );
}
