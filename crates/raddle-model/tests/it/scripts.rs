use raddle_model::{CallForm, ItemKind, ResponsesRequest, StreamEvent, Tokens};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{LIMITS, Vendor, items, streamed_text, user_message, user_request};

#[tokio::test]
async fn a_script_is_played_as_written() {
    let vendor = Vendor::in_memory(
        r#"
        [[answer]]
        match = "weather"
        steps = [
            { reasoning = "Let me look.", size = 3 },
            { call = "look", arguments = { at = "the sky" } },
            { call = "patch", input = "a\nb" },
            { usage = { input = 5, cached = 2, output = 4, reasoning = 1 } },
        ]
        [[answer]]
        match = "it rains"
        steps = [{ text = "Take a coat. 🧥", size = 1 }, { refusal = "No more." }]
        "#,
    );
    let events = vendor.events("the weather?").await.expect("an answer");
    let StreamEvent::Reasoning {
        id,
        summary,
        sealed,
        ..
    } = &events[2]
    else {
        panic!("{events:?}");
    };
    assert_eq!(summary, &["Let me look."]);
    assert!(sealed["encrypted_content"].is_string());
    let call = |call_id: &str, name: &str, arguments: &str, form| StreamEvent::Call {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        form,
    };
    let expected = [
        StreamEvent::Started {
            id: id.clone(),
            kind: ItemKind::Reasoning,
        },
        StreamEvent::Summary {
            id: id.clone(),
            part: 0,
            text: "Let me look.".to_owned(),
        },
        events[2].clone(),
        call(
            "call_1_1",
            "look",
            r#"{"at":"the sky"}"#,
            CallForm::Function,
        ),
        call("call_1_2", "patch", "a\nb", CallForm::Freeform),
        StreamEvent::Completed(Some(Tokens {
            input: 5,
            cached: 2,
            output: 4,
            reasoning: 1,
            ..Tokens::default()
        })),
    ];
    assert_eq!(events, expected);

    let output =
        json!({"type": "function_call_output", "call_id": "call_1_1", "output": "it rains"});
    let request = ResponsesRequest {
        input: items(&[user_message("the weather?"), output]),
        ..user_request("the weather?")
    };
    let stream = vendor.client.responses(&vendor.endpoint, &request, LIMITS);
    let mut stream = stream.await.expect("an answer");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await.expect("an event") {
        events.push(event);
    }
    assert_eq!(streamed_text(&events), "Take a coat. 🧥No more.");
    let messages: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["Take a coat. 🧥", "No more."]);
}

#[tokio::test]
async fn a_call_with_a_schema_gets_an_object() {
    let vendor = Vendor::in_memory("");
    let request = ResponsesRequest {
        output_schema: Some(
            json!({"type": "object", "properties": {"title": {"type": "string"}},
            "required": ["title"], "additionalProperties": false}),
        ),
        ..user_request("mend the loom, please")
    };
    let stream = vendor.client.responses(&vendor.endpoint, &request, LIMITS);
    let mut stream = stream.await.expect("an answer");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await.expect("an event") {
        events.push(event);
    }
    let answer: Value = serde_json::from_str(&streamed_text(&events)).expect("JSON");
    assert_eq!(answer, json!({"title": "mend the loom, please"}));
}

#[tokio::test]
async fn text_that_came_together_is_handed_out_together() {
    let vendor = Vendor::in_memory("");
    let events = vendor.events("MOCK text n=10000 size=8").await;
    let events = events.expect("an answer");
    assert_eq!(streamed_text(&events).len(), 80_000);
    assert!(events.len() < 1000, "{} events", events.len());
}

#[tokio::test]
async fn a_held_answer_waits_for_its_release() {
    let vendor = Vendor::in_memory("");
    // Released in advance, it does not wait.
    vendor.server.release(1);
    assert_eq!(
        vendor.text("MOCK held text say=a").await.as_deref(),
        Ok("a")
    );
    let call = vendor.text("MOCK held text say=b");
    let release = async {
        vendor.server.until(|counts| counts.held == 1).await;
        vendor.server.release(1);
    };
    let (text, ()) = tokio::join!(call, release);
    assert_eq!(text.as_deref(), Ok("b"));
    assert_eq!(vendor.server.counts().held, 0);
}

#[tokio::test]
async fn markers_that_cannot_be_read_are_refused_with_a_reason() {
    let vendor = Vendor::in_memory("");
    let error = vendor
        .events("MOCK text n=many")
        .await
        .expect_err("a refusal");
    assert!(
        error.to_string().contains("`n` must be a whole number"),
        "{error}"
    );
}

/// Sends one raw request, and returns the status and the body of its response.
async fn fetch(vendor: &Vendor, head: &str, body: &str) -> (u16, Value) {
    let base_url = vendor.server.base_url();
    let host = base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    let mut stream = tokio::net::TcpStream::connect(host)
        .await
        .expect("a connection");
    let length = body.len();
    let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
    let host_header = if headers.contains("host:") {
        String::new()
    } else {
        format!("host: {host}\r\n")
    };
    let request = format!(
        "{line} HTTP/1.1\r\n{host_header}connection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("to write");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("to read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = serde_json::from_str(body).expect("JSON");
    (status.expect("a status"), body)
}

#[tokio::test]
async fn the_other_addresses() {
    let vendor = Vendor::listen().await;
    vendor.events("MOCK text say=hi").await.expect("an answer");
    for (head, body, status, pointer, expected) in [
        ("GET /v1/models", "", 200, "/data/0/id", json!("mock")),
        ("GET /requests", "", 200, "/calls", json!(1)),
        (
            "GET /requests",
            "",
            200,
            "/requests/0/body/model",
            json!("mock"),
        ),
        ("POST /release?n=3", "", 200, "/released", json!(3)),
        ("POST /release?n=x", "", 400, "/error/type", json!("mock")),
        ("GET /", "", 404, "/error/type", json!("mock")),
        (
            "GET /requests\nhost: a.example:4010\r\n",
            "",
            403,
            "/error/type",
            json!("mock"),
        ),
        (
            "GET /requests\nhost: localhost:4010\r\n",
            "",
            200,
            "/calls",
            json!(1),
        ),
        (
            "GET /v1/models\norigin: http://a.example\r\n",
            "",
            403,
            "/error/type",
            json!("mock"),
        ),
        ("POST /v1/responses", "{", 400, "/error/type", json!("mock")),
        (
            "POST /v1/responses\nx-api-key: sekret\r\n",
            "{}",
            400,
            "/error/type",
            json!("mock"),
        ),
        ("GET /requests", "", 200, "/calls", json!(3)),
        (
            "GET /requests",
            "",
            200,
            "/requests/2/headers/x-api-key",
            json!("…"),
        ),
        (
            "GET /requests",
            "",
            200,
            "/requests/2/headers/content-length",
            json!("2"),
        ),
    ] {
        let (actual_status, answer) = fetch(&vendor, head, body).await;
        assert_eq!(actual_status, status, "{head}: {answer}");
        assert_eq!(answer.pointer(pointer), Some(&expected), "{head}: {answer}");
    }
}
