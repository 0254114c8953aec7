//! Tools that clients offer with `thread/start` and run when `item/tool/call` asks them to.

use std::sync::Arc;

use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Stage;
use crate::script;

/// A tool, and one in a group.
fn tools() -> Value {
    let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    json!([look, {"type": "namespace", "name": "ns", "description": "A group.", "tools": [look]}])
}

/// A thread with tools, of which the client has heard that it has begun.
async fn start(client: &mut TestClient) -> Value {
    let params = json!({"dynamicTools": tools()});
    let begun = client.ask("thread/start", params).await;
    let id = begun.expect("a thread")["thread"]["id"].take();
    assert_eq!(client.next().await["method"], "thread/started");
    id
}

async fn say(client: &mut TestClient, thread: &Value) -> Value {
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    let begun = client.ask("turn/start", params).await.expect("a turn");
    begun["turn"]["id"].clone()
}

/// What is heard up to and including a method.
async fn until(client: &mut TestClient, method: &str) -> Vec<Value> {
    let mut heard = vec![client.next().await];
    while heard.last().unwrap()["method"] != method {
        heard.push(client.next().await);
    }
    heard
}

/// The last form of the calls among what was heard, in words.
fn calls(heard: &[Value]) -> Vec<String> {
    let ended = heard.iter().filter(|it| it["method"] == "item/completed");
    let items = ended.map(|it| &it["params"]["item"]);
    let calls = items.filter(|it| it["type"] == "dynamicToolCall");
    let word = |it: &Value| it.as_str().unwrap_or("-").to_owned();
    let in_words = calls.map(|it| {
        let said = word(&it["contentItems"][0]["text"]);
        let success = &it["success"];
        format!(
            "{} {} {success}: {said}",
            word(&it["tool"]),
            word(&it["status"])
        )
    });
    in_words.collect()
}

/// What the agent said last.
fn answer(heard: &[Value]) -> &str {
    let turn = &heard.last().unwrap()["params"]["turn"];
    turn["items"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_call_goes_to_the_client_and_its_answer_to_the_model() {
    let mut stage = Stage::new();
    stage.says = vec!["calls ns__look {\"at\": 1}".to_owned(), "heard".to_owned()];
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let thread = start(&mut client).await;
    let turn = say(&mut client, &thread).await;
    let mut heard = until(&mut client, "item/tool/call").await;
    let asked = heard.pop().unwrap();
    let item = &heard
        .iter()
        .rfind(|it| it["method"] == "item/started")
        .unwrap()["params"]["item"];
    for (member, wanted) in [
        ("type", json!("dynamicToolCall")),
        ("tool", json!("look")),
        ("namespace", json!("ns")),
        ("arguments", json!({"at": 1})),
        ("status", json!("inProgress")),
        ("success", json!(null)),
    ] {
        assert_eq!(item[member], wanted, "{member}");
    }
    let wanted = json!({
        "threadId": thread, "turnId": turn, "callId": "call-0", "namespace": "ns", "tool": "look", "arguments": {"at": 1},
    });
    assert_eq!(asked["params"], wanted);
    // The wire has no word for a client that is waited for but that the thread is active.
    let read = client.ask("thread/read", json!({"threadId": thread})).await;
    let status = read.expect("a thread")["thread"]["status"].take();
    assert_eq!(status, json!({"type": "active", "activeFlags": []}));

    let content = json!([{"type": "inputText", "text": "a loom"}, {"type": "inputText", "text": "and a raddle"}]);
    let given = json!({"id": asked["id"], "result": {"contentItems": content, "success": true}});
    client.send(&given);
    // A second answer changes nothing.
    client.send(&given);
    let heard = until(&mut client, "turn/completed").await;
    let item = &heard[0]["params"]["item"];
    assert_eq!(
        heard[0]["method"], "item/completed",
        "no other word comes first"
    );
    assert_eq!(item["contentItems"], content);
    assert_eq!(
        (&item["success"], &item["status"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(item["durationMs"], 0);
    assert_eq!(answer(&heard), "a loom\nand a raddle");
}

#[tokio::test]
async fn every_call_has_a_result() {
    let cannot = "No answer could be had: ";
    let long = "x".repeat((1 << 20) + 1);
    let text = json!([{"type": "inputText", "text": long}]);
    let sound = json!([{"type": "inputAudio", "audioUrl": long}]);
    let unknown = json!([{"type": "inputHologram", "of": long}]);
    let given =
        |content: Value| Some(json!({"result": {"contentItems": content, "success": true}}));
    for (call, result, said, told) in [
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
            "look failed false: No answer could be had: not mine",
            "not mine",
        ),
        (
            "look {}",
            Some(json!({"result": {}})),
            cannot,
            "the answer cannot be read",
        ),
        ("look {}", given(text), cannot, "at most 1048576 are taken"),
        ("look {}", given(sound), cannot, "at most 1048576 are taken"),
        (
            "look {}",
            given(unknown),
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
        let mut stage = Stage::new();
        stage.says = vec![format!("calls {call}"), "heard".to_owned()];
        let mut server = stage.open();
        let mut client = TestClient::connect_boldly(&mut server).await;
        let thread = start(&mut client).await;
        say(&mut client, &thread).await;
        if let Some(mut result) = result {
            let asked = until(&mut client, "item/tool/call").await.pop().unwrap();
            result["id"] = asked["id"].clone();
            client.send(&result);
        }
        let heard = until(&mut client, "turn/completed").await;
        assert_eq!(
            heard.last().unwrap()["params"]["turn"]["status"],
            "completed"
        );
        let found = calls(&heard);
        assert!(
            found.len() == 1 && found[0].contains(said),
            "{call}: {found:?}"
        );
        assert!(answer(&heard).contains(told), "{call}: {}", answer(&heard));
    }
}

#[tokio::test]
async fn calls_of_one_answer_are_asked_side_by_side() {
    let mut stage = Stage::new();
    stage.says = vec![
        "calls look {\"n\": 1}\ncalls ns__look {\"n\": 2}".to_owned(),
        "heard".to_owned(),
    ];
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let first = until(&mut client, "item/tool/call").await.pop().unwrap();
    let second = until(&mut client, "item/tool/call").await.pop().unwrap();
    for asked in [&second, &first] {
        let text = format!("saw {}", asked["params"]["arguments"]["n"]);
        let content = json!([{"type": "inputText", "text": text}]);
        client.send(
            &json!({"id": asked["id"], "result": {"contentItems": content, "success": true}}),
        );
        // One after the other, so that the order is known.
        client.next().await;
    }
    let heard = until(&mut client, "turn/completed").await;
    assert_eq!(answer(&heard), "saw 2 · saw 1");
}

/// With nobody there the call waits. Whoever comes is asked, under the same id, also by the next process.
#[tokio::test]
async fn a_call_waits_for_whoever_comes() {
    let stage = Stage::new();
    let journal = Arc::new(MemoryJournal::new());
    let open = |says: &'static [&str]| {
        let threads = script::threads_of(journal.clone(), says);
        Server::open(stage.options(), threads).expect("a server")
    };
    let mut first = open(&["calls look {}"]);
    let mut client = TestClient::connect_boldly(&mut first).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let asked = until(&mut client, "item/tool/call").await.pop().unwrap();
    client.leave().await.when_ended().await;
    let mut again = Vec::new();
    let mut second = open(&["heard"]);
    for server in [&mut first, &mut second] {
        let mut other = TestClient::connect(server).await;
        let params = json!({"threadId": thread, "excludeTurns": true});
        other.ask("thread/resume", params).await.expect("a thread");
        assert_eq!(
            until(&mut other, "item/tool/call").await.pop(),
            Some(asked.clone())
        );
        again.push(other);
    }
    let mut last = again.pop().unwrap();
    let content = json!([{"type": "inputText", "text": "late"}]);
    last.send(&json!({"id": asked["id"], "result": {"contentItems": content, "success": true}}));
    let heard = until(&mut last, "turn/completed").await;
    assert_eq!(answer(&heard), "late");
}

/// A client that does not know the tool says so with an error. That is no answer while another may have one.
#[tokio::test]
async fn who_cannot_run_a_tool_does_not_fail_it_for_others() {
    for others_can in [true, false] {
        let mut stage = Stage::new();
        stage.says = vec!["calls look {}".to_owned(), "heard".to_owned()];
        let mut server = stage.open();
        let mut owner = TestClient::connect_boldly(&mut server).await;
        let thread = start(&mut owner).await;
        let mut other = TestClient::connect_boldly(&mut server).await;
        let resume = json!({"threadId": thread});
        other.ask("thread/resume", resume).await.expect("resumed");
        say(&mut owner, &thread).await;
        let asked = until(&mut other, "item/tool/call").await.pop().unwrap();
        let refusal = json!({"code": -32000, "message": "no such tool here"});
        other.send(&json!({"id": asked["id"], "error": refusal}));
        // A request of the same client that is answered after it shows that it was taken.
        let read = json!({"threadId": thread});
        let id = other.request("thread/read", read);
        while other.next().await["id"] != id {}
        until(&mut owner, "item/tool/call").await;
        let (said, call) = if others_can {
            let found = json!([{"type": "inputText", "text": "found"}]);
            let result = json!({"contentItems": found, "success": true});
            let said = json!({"id": asked["id"], "result": result});
            (said, "look completed true: found")
        } else {
            let said = json!({"id": asked["id"], "error": refusal});
            (
                said,
                "look failed false: No answer could be had: no such tool here",
            )
        };
        owner.send(&said);
        let heard = until(&mut owner, "turn/completed").await;
        assert_eq!(calls(&heard), [call]);
    }
}

#[tokio::test]
async fn an_interrupt_takes_the_question_back() {
    let mut stage = Stage::new();
    stage.says = vec!["calls look {}".to_owned(), "heard".to_owned()];
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let thread = start(&mut client).await;
    let turn = say(&mut client, &thread).await;
    let asked = until(&mut client, "item/tool/call").await.pop().unwrap();
    client.request(
        "turn/interrupt",
        json!({"threadId": thread, "turnId": turn}),
    );
    let heard = until(&mut client, "turn/completed").await;
    assert_eq!(
        heard.last().unwrap()["params"]["turn"]["status"],
        "interrupted"
    );
    let found = calls(&heard);
    assert!(
        found[0].starts_with("look failed false: The client was asked to run this"),
        "{found:?}"
    );
    // An answer that comes too late is nobody's, and the next turn knows how it was.
    let content = json!([{"type": "inputText", "text": "late"}]);
    client.send(&json!({"id": asked["id"], "result": {"contentItems": content, "success": true}}));
    say(&mut client, &thread).await;
    let heard = until(&mut client, "turn/completed").await;
    assert!(
        answer(&heard).starts_with("The client was asked to run this"),
        "{heard:?}"
    );
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let twice = json!([tools()[0], tools()[0]]);
    let refused = client
        .ask("thread/start", json!({"dynamicTools": twice}))
        .await;
    let wanted = json!({"code": -32600, "message": "two tools are named `look`; give each a name of its own"});
    assert_eq!(refused, Err(wanted));
}

/// A tool that is asked for stays so; from the model's next call on there are the new ones, and no others.
#[tokio::test]
async fn tools_change_while_a_turn_runs() {
    let mut stage = Stage::new();
    stage.says = vec![
        "calls look {}".to_owned(),
        "calls see {}".to_owned(),
        "calls look {}".to_owned(),
        "heard".to_owned(),
    ];
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let asked = until(&mut client, "item/tool/call").await.pop().unwrap();
    let see = json!({"type": "function", "name": "see", "description": "Sees.", "inputSchema": {"type": "object"}});
    let loose =
        json!({"type": "function", "name": "see", "description": "Sees.", "inputSchema": true});
    for (tools, wanted) in [(json!([loose]), false), (json!([see]), true)] {
        let change = json!({"threadId": thread, "dynamicTools": tools});
        let id = client.request("thread/settings/update", change);
        let mut said = client.next().await;
        while said["id"] != id {
            said = client.next().await;
        }
        assert_eq!(said.get("result").is_some(), wanted, "{said}");
    }
    let content = json!([{"type": "inputText", "text": "seen"}]);
    let seen = json!({"contentItems": content, "success": true});
    client.send(&json!({"id": asked["id"], "result": seen}));
    let mut heard = until(&mut client, "item/tool/call").await;
    let asked = heard.last().unwrap();
    assert_eq!(asked["params"]["tool"], "see");
    client.send(&json!({"id": asked["id"], "result": seen}));
    heard.extend(until(&mut client, "turn/completed").await);
    assert_eq!(
        calls(&heard),
        [
            "look completed true: seen",
            "see completed true: seen",
            "look failed false: There is no tool named look."
        ]
    );
}
