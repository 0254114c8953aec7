use serde_json::json;

use super::*;
use crate::VendorFault;

fn read(wire: &Value) -> Result<ReadOutcome, CallError> {
    ResponsesReader::default().read(&wire.to_string())
}

#[test]
fn events_are_read() {
    let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let cases = [
        (
            json!({"type": "response.output_item.added", "item": {"type": "message", "id": "m"}}),
            StreamEvent::Started {
                id: "m".into(),
                kind: ItemKind::Message,
            },
        ),
        (
            json!({"type": "response.output_text.delta", "item_id": "m", "delta": "h\"é\n"}),
            StreamEvent::Text {
                id: "m".into(),
                text: "h\"é\n".into(),
            },
        ),
        (
            json!({"type": "response.refusal.delta", "item_id": "m", "delta": "no"}),
            StreamEvent::Text {
                id: "m".into(),
                text: "no".into(),
            },
        ),
        (
            json!({"type": "response.reasoning_summary_text.delta", "item_id": "r", "summary_index": 1, "delta": "hm"}),
            StreamEvent::Summary {
                id: "r".into(),
                part: 1,
                text: "hm".into(),
            },
        ),
        (
            json!({"type": "response.reasoning_text.delta", "item_id": "r", "content_index": 2, "delta": "hm"}),
            StreamEvent::Thought {
                id: "r".into(),
                part: 2,
                text: "hm".into(),
            },
        ),
        (
            done(
                json!({"type": "message", "id": "m", "phase": "final_answer",
                "content": [{"type": "output_text", "text": "he"}, {"type": "refusal", "refusal": "y"}]}),
            ),
            StreamEvent::Message {
                id: "m".into(),
                text: "hey".into(),
                phase: Some("final_answer".into()),
                sealed: Some(json!({"phase": "final_answer"})),
            },
        ),
        (
            done(
                json!({"type": "reasoning", "id": "r", "encrypted_content": "sealed",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}),
            ),
            StreamEvent::Reasoning {
                id: "r".into(),
                summary: vec!["a".into(), "b".into()],
                content: Vec::new(),
                sealed: json!({"type": "reasoning", "id": "r", "encrypted_content": "sealed",
                    "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}),
            },
        ),
        (
            done(json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})),
            StreamEvent::Call {
                call_id: "c".into(),
                name: "f".into(),
                arguments: "{}".into(),
                form: CallForm::Function,
            },
        ),
        (
            done(json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "a\nb"})),
            StreamEvent::Call {
                call_id: "c".into(),
                name: "f".into(),
                arguments: "a\nb".into(),
                form: CallForm::Freeform,
            },
        ),
        (
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 7, "output_tokens": 2,
                "input_tokens_details": null, "output_tokens_details": {"reasoning_tokens": 1}}}}),
            StreamEvent::Completed(Some(Tokens {
                input: 7,
                cached: 0,
                output: 2,
                reasoning: 1,
                ..Tokens::default()
            })),
        ),
        (
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": null, "output_tokens": 2.0,
                "input_tokens_details": {"cached_tokens": null}}}}),
            StreamEvent::Completed(Some(Tokens {
                input: 0,
                cached: 0,
                output: 2,
                reasoning: 0,
                ..Tokens::default()
            })),
        ),
        (
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": "many"}}}),
            StreamEvent::Completed(None),
        ),
        (
            json!({"type": "response.completed", "response": {"usage": 7}}),
            StreamEvent::Completed(None),
        ),
        (
            json!({"type": "response.completed", "response": {"usage": null}}),
            StreamEvent::Completed(None),
        ),
        (
            json!({"type": "response.completed"}),
            StreamEvent::Completed(None),
        ),
    ];
    for (wire, expected) in cases {
        assert_eq!(read(&wire), Ok(ReadOutcome::Event(expected)), "{wire}");
    }
}

#[test]
fn keep_alives_are_distinguished_from_progress() {
    for (wire, expected) in [
        (json!({"type": "response.created"}), ReadOutcome::Progress),
        (
            json!({"type": "response.in_progress"}),
            ReadOutcome::Nothing,
        ),
        (
            json!({"type": "keepalive", "sequence_number": 3}),
            ReadOutcome::Nothing,
        ),
        (json!({"type": "ping"}), ReadOutcome::Nothing),
        (
            json!({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": "{"}),
            ReadOutcome::Progress,
        ),
        (
            json!({"type": "response.output_item.done", "item": {"type": "web_search_call", "id": "w"}}),
            ReadOutcome::Progress,
        ),
        (
            json!({"type": "of a later year", "delta": {"x": 1}, "item": 7}),
            ReadOutcome::Progress,
        ),
    ] {
        assert_eq!(read(&wire), Ok(expected), "{wire}");
    }
    assert_eq!(
        ResponsesReader::default().read("[DONE]"),
        Ok(ReadOutcome::Nothing)
    );
}

#[test]
fn an_unannounced_item_gets_a_start_event() {
    let mut reader = ResponsesReader::default();
    let delta = json!({"type": "response.output_text.delta", "item_id": "m", "delta": "x"});
    let Ok(ReadOutcome::Event(event)) = reader.read(&delta.to_string()) else {
        panic!("no event");
    };
    let start = StreamEvent::Started {
        id: "m".into(),
        kind: ItemKind::Message,
    };
    assert_eq!(reader.missing_start(&event), Some(start.clone()));
    assert_eq!(reader.missing_start(&event), None);
    assert_eq!(reader.missing_start(&start), None);
}

#[test]
fn items_are_identified_by_index_or_id() {
    let mut reader = ResponsesReader::default();
    for (index, id, expected) in [
        (Some(0), "a", "a"),
        (Some(0), "of another event", "a"),
        (None, "a", "a"),
        (Some(1), "a", "a 1"),
        (Some(1), "", "a 1"),
        (None, "b", "b"),
        (Some(2), "", ""),
    ] {
        assert_eq!(&*reader.id(index, id), expected, "{index:?} {id}");
    }
}

#[test]
fn text_of_one_part_grows_together() {
    let text = |id: &str, text: &str| StreamEvent::Text {
        id: id.into(),
        text: text.into(),
    };
    let thought = |part, text: &str| StreamEvent::Thought {
        id: "m".into(),
        part,
        text: text.into(),
    };
    let mut first = text("m", "a");
    assert_eq!(first.grow(text("m", "b")), None);
    assert_eq!(first, text("m", "ab"));
    assert_eq!(first.grow(text("n", "c")), Some(text("n", "c")));
    assert_eq!(first.grow(thought(0, "c")), Some(thought(0, "c")));
    let mut first = thought(1, "a");
    assert_eq!(first.grow(thought(2, "b")), Some(thought(2, "b")));
    assert_eq!(first.grow(thought(1, "b")), None);
    assert_eq!(first, thought(1, "ab"));
}

#[test]
fn failures_are_typed() {
    let failed = |code: &str, message: &str| json!({"type": "response.failed", "response": {"error": {"code": code, "message": message}}});
    let incomplete = |reason: &str| json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
    for (wire, expected, wait_ms) in [
        (
            failed("rate_limit_exceeded", "slow down, try again in 2s"),
            VendorFault::RateLimit,
            Some(2000),
        ),
        (failed("server_error", "oh"), VendorFault::Internal, None),
        (failed("something_new", "oh"), VendorFault::Internal, None),
        (failed("insufficient_quota", "oh"), VendorFault::Quota, None),
        (failed("invalid_image", "oh"), VendorFault::BadRequest, None),
        (
            failed("context_length_exceeded", "oh"),
            VendorFault::ContextFull,
            None,
        ),
        (incomplete("max_output_tokens"), VendorFault::CutShort, None),
        (incomplete("content_filter"), VendorFault::Policy, None),
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "m"}),
            VendorFault::RateLimit,
            None,
        ),
        (
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
            VendorFault::Overloaded,
            None,
        ),
        (
            json!({"error": {"type": "server_error", "message": "m"}}),
            VendorFault::Internal,
            None,
        ),
        (
            json!({"type": "response.failed"}),
            VendorFault::Internal,
            None,
        ),
    ] {
        let error = read(&wire).expect_err("a failure");
        let wait = error.retry_after().map(|it| it.as_millis());
        let CallError::Vendor(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!((error.fault, wait), (expected, wait_ms), "{wire}");
        assert!(!error.message.is_empty(), "{wire}");
    }
    for data in ["{", "", "null", "{\"x\":1}", "[]"] {
        let error = ResponsesReader::default()
            .read(data)
            .expect_err("a failure");
        assert!(
            matches!(error, CallError::Malformed(_)),
            "{data}: {error:?}"
        );
    }
}
