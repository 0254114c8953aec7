use std::path::Path;

use raddle_model::Request;
use serde_json::{Value, json};

use crate::support::{LIMITS, Vendor, asking, items};

/// Compares what is sent with a file. Written anew with `RADDLE_GOLDEN=write`, to be read as a diff.
async fn check(name: &str, request: &Request) {
    let vendor = Vendor::in_memory("");
    let stream = vendor.client.responses(&vendor.endpoint, request, LIMITS);
    stream.await.expect("an answer");
    let seen = vendor.server.requests();
    let body: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    let sent = serde_json::to_string_pretty(&body).expect("JSON") + "\n";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let file = folder.join(format!("{name}.json"));
    if std::env::var_os("RADDLE_GOLDEN").is_some_and(|it| it == "write") {
        std::fs::write(&file, &sent).expect("a file");
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(sent, wanted, "{name}");
}

#[tokio::test]
async fn a_plain_question() {
    check("plain", &asking("hello")).await;
}

#[tokio::test]
async fn everything_that_can_be_said() {
    let request = Request {
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
        tools: vec![
            json!({"type": "function", "name": "look", "strict": false,
                "parameters": {"type": "object", "properties": {}}}),
            json!({"type": "custom", "name": "apply_patch", "description": "Changes files."}),
        ],
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

#[tokio::test]
async fn thinking_that_is_not_summed_up() {
    let request = Request {
        summary: Some("none".to_owned()),
        effort: Some("low".to_owned()),
        ..asking("hello")
    };
    check("effort", &request).await;
    let request = Request {
        summary: Some("none".to_owned()),
        ..asking("hello")
    };
    check("plain", &request).await;
}

#[tokio::test]
async fn keys_headers_and_queries_are_sent() {
    let vendor = Vendor::in_memory("");
    let endpoint = vendor.endpoint.clone().with_query("api-version", "1");
    let endpoint = endpoint.with_key("k").expect("a key");
    let endpoint = endpoint.with_header("x-team", "looms").expect("a header");
    let request = asking("hi");
    let stream = vendor.client.responses(&endpoint, &request, LIMITS);
    stream.await.expect("an answer");
    let seen = &vendor.server.requests()[0];
    for (name, wanted) in [
        ("authorization", "Bearer k"),
        ("x-team", "looms"),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
        ("host", "memory:80"),
    ] {
        let found = seen.headers.iter().find(|(it, _)| it == name);
        assert_eq!(
            found.map(|(_, value)| value.as_str()),
            Some(wanted),
            "{name}"
        );
    }
}
