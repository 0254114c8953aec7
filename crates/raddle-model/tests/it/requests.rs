use std::path::Path;

use raddle_model::{
    CallForm, HistoryEntry, InputPart, ModelQuery, ResponsesRequest, ToolDef, WireFormat,
};
use serde_json::{Value, json};

use crate::support::{LIMITS, Vendor, items, user_request};

/// Compares the request with a file. `RADDLE_GOLDEN=write` rewrites it, to be reviewed as a diff.
async fn check(name: &str, request: &ResponsesRequest) {
    let vendor = Vendor::in_memory("");
    let stream = vendor.client.responses(&vendor.endpoint, request, LIMITS);
    stream.await.expect("an answer");
    check_sent(name, &vendor);
}

/// The same on the other wires, each in its folder.
async fn check_question(name: &str, question: &ModelQuery<'_>) {
    for wire in WireFormat::ALL
        .into_iter()
        .filter(|it| *it != WireFormat::Responses)
    {
        let vendor = Vendor::in_memory("").on(wire);
        vendor.question(question).await.expect("an answer");
        check_sent(&format!("{}/{name}", wire.name()), &vendor);
    }
}

fn check_sent(name: &str, vendor: &Vendor) {
    let requests = vendor.server.requests();
    let body: Value = serde_json::from_slice(&requests[0].body).expect("JSON");
    let sent = serde_json::to_string_pretty(&body).expect("JSON") + "\n";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let file = folder.join(format!("{name}.json"));
    if std::env::var_os("RADDLE_GOLDEN").is_some_and(|it| it == "write") {
        std::fs::write(&file, &sent).expect("a file");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(sent, expected, "{name}");
}

#[tokio::test]
async fn a_plain_question() {
    check("plain", &user_request("hello")).await;
}

#[tokio::test]
async fn a_request_with_every_member() {
    let request = ResponsesRequest {
        model: "big".to_owned(),
        instructions: "Be brief.".to_owned(),
        input: items(&[
            json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]}),
            json!({"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "what is this"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            ]}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}),
            json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "a loom"}),
        ]),
        tools: items(&[
            json!({"type": "function", "name": "look", "strict": false,
                "parameters": {"type": "object", "properties": {}}}),
            json!({"type": "custom", "name": "apply_patch", "description": "Changes files."}),
        ]),
        tool_choice: Some(json!("auto")),
        parallel_tool_calls: Some(true),
        effort: Some("high".to_owned()),
        summary: Some("auto".to_owned()),
        verbosity: Some("low".to_owned()),
        output_schema: Some(
            json!({"type": "object", "properties": {"title": {"type": "string"}},
            "required": ["title"], "additionalProperties": false}),
        ),
        service_tier: Some("flex".to_owned()),
        prompt_cache_key: Some("thread-1".to_owned()),
    };
    check("full", &request).await;
}

fn call<'a>(id: &'a str, arguments: &'a str, form: CallForm) -> HistoryEntry<'a> {
    HistoryEntry::Call {
        id,
        name: "look",
        arguments,
        form,
    }
}

fn output<'a>(call: &'a str, text: &'a str, images: &[&'a str]) -> HistoryEntry<'a> {
    HistoryEntry::Output {
        call,
        text,
        images: images.to_vec(),
        failed: images.is_empty(),
    }
}

#[tokio::test]
async fn a_plain_question_on_other_wires() {
    let question = ModelQuery {
        model: "small",
        history: vec![HistoryEntry::User(vec![InputPart::Text("hello".into())])],
        ..ModelQuery::default()
    };
    check_question("plain", &question).await;
}

#[tokio::test]
async fn a_full_question_on_other_wires() {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}, "additionalProperties": false});
    let answer = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
    let text = |it: &'static str| InputPart::Text(it.into());
    let image = |url| InputPart::Image {
        url,
        detail: Some("high"),
    };
    let question = ModelQuery {
        model: "big",
        instructions: "Be brief.".into(),
        history: vec![
            HistoryEntry::User(vec![text("rules")]),
            HistoryEntry::User(vec![
                text("what is this"),
                image("data:image/png;base64,AA=="),
                image("https://images.example/loom.png"),
            ]),
            HistoryEntry::Assistant {
                text: "I look.",
                sealed: None,
            },
            call("c1", "{\"at\": \"the sky\"}", CallForm::Function),
            call("c2", "*** Begin", CallForm::Freeform),
            call("c3", "{\"at\": ", CallForm::Function),
            output("c1", "a loom", &["data:image/gif;base64,AA=="]),
            output("c2", "no such file", &[]),
            output("c3", "the call is no JSON", &[]),
            HistoryEntry::User(vec![text("and now?")]),
            call("c4", "", CallForm::Function),
            output("c4", "nothing", &[]),
        ],
        tools: vec![ToolDef {
            name: "look",
            description: "Looks.",
            schema: &schema,
        }],
        calls_nothing: true,
        effort: Some("high"),
        summary: Some("auto"),
        output_schema: Some(&answer),
        service_tier: Some("flex"),
        output_tokens_max: Some(9000),
    };
    check_question("full", &question).await;
}

/// This wire has no ids: the position of an output names its call.
#[tokio::test]
async fn outputs_are_in_the_order_of_their_calls() {
    let question = ModelQuery {
        model: "big",
        history: vec![
            call("c1", "{}", CallForm::Function),
            call("c2", "{}", CallForm::Function),
            output("c2", "second", &[]),
            output("c1", "first", &[]),
        ],
        ..ModelQuery::default()
    };
    let vendor = Vendor::in_memory("").on(WireFormat::Gemini);
    vendor.question(&question).await.expect("an answer");
    let body = &vendor.server.requests()[0].body;
    let body: Value = serde_json::from_slice(body).expect("JSON");
    for (at, expected) in [(0, "first"), (1, "second")] {
        let response = &body["contents"][1]["parts"][at]["functionResponse"]["response"];
        assert_eq!(response, &json!({ "error": expected }), "{body}");
    }
}

#[tokio::test]
async fn thinking_without_a_summary() {
    let request = ResponsesRequest {
        summary: Some("none".to_owned()),
        effort: Some("low".to_owned()),
        ..user_request("hello")
    };
    check("effort", &request).await;
    let request = ResponsesRequest {
        summary: Some("none".to_owned()),
        ..user_request("hello")
    };
    check("plain", &request).await;
}

#[tokio::test]
async fn keys_headers_and_queries_are_sent() {
    let vendor = Vendor::in_memory("");
    let endpoint = vendor.endpoint.clone().with_query("api-version", "1");
    let endpoint = endpoint.with_key("k").expect("a key");
    let endpoint = endpoint.with_header("x-team", "looms").expect("a header");
    let request = user_request("hi");
    let stream = vendor.client.responses(&endpoint, &request, LIMITS);
    stream.await.expect("an answer");
    let request_seen = &vendor.server.requests()[0];
    for (name, expected) in [
        ("authorization", "Bearer k"),
        ("x-team", "looms"),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
        ("host", "memory:80"),
    ] {
        let header = request_seen.headers.iter().find(|(it, _)| it == name);
        assert_eq!(
            header.map(|(_, value)| value.as_str()),
            Some(expected),
            "{name}"
        );
    }
}
