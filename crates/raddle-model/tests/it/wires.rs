use raddle_model::{
    CallForm, HistoryEntry, InputPart, ModelQuery, StreamEvent, Tokens, WireFormat,
};
use serde_json::json;

use crate::support::{Vendor, collect_events, streamed_text};

/// The contents of an answer, without the item ids of its wire.
fn summary(events: &[StreamEvent]) -> Vec<String> {
    let lines = events.iter().filter_map(|event| match event {
        StreamEvent::Message { text, .. } => Some(format!("says {text}")),
        StreamEvent::Reasoning {
            summary, content, ..
        } => {
            let text = [&summary[..], content].concat().concat();
            (!text.is_empty()).then(|| format!("thinks {text}"))
        }
        StreamEvent::Call {
            name, arguments, ..
        } => Some(format!("calls {name} {arguments}")),
        StreamEvent::Completed(tokens) => Some(format!("costs {tokens:?}")),
        _ => None,
    });
    lines.collect()
}

#[tokio::test]
async fn an_answer_is_the_same_on_every_wire() {
    let script = r#"
        [[answer]]
        match = "weather"
        steps = [
            { reasoning = "Let me look. 🧵", size = 3 },
            { text = "I look.", size = 2 },
            { call = "look", arguments = { at = "the sky" } },
            { call = "look", arguments = { at = "the sea" } },
            { usage = { input = 5, cached = 2, cache_written = 1, output = 4, reasoning = 1 } },
        ]
    "#;
    for wire in WireFormat::ALL {
        let vendor = Vendor::in_memory(script).on(wire);
        let events = vendor.events("the weather?").await.expect("an answer");
        let tokens = Tokens {
            input: 5,
            cached: 2,
            output: 4,
            // Messages does not report it.
            reasoning: u64::from(wire != WireFormat::Messages),
            // Gemini does not report it.
            cache_written: u64::from(wire != WireFormat::Gemini),
        };
        let expected = [
            "thinks Let me look. 🧵".to_owned(),
            "says I look.".to_owned(),
            r#"calls look {"at":"the sky"}"#.to_owned(),
            r#"calls look {"at":"the sea"}"#.to_owned(),
            format!("costs {:?}", Some(tokens)),
        ];
        assert_eq!(summary(&events), expected, "{wire:?}: {events:?}");
    }
}

#[tokio::test]
async fn connections_are_kept_on_every_wire() {
    for wire in WireFormat::ALL {
        let vendor = Vendor::in_memory("").on(wire);
        for _ in 0..3 {
            let text = vendor.text("MOCK text say=hi").await;
            assert_eq!(text.as_deref(), Ok("hi"), "{wire:?}");
            // The connection is free once the answer has ended at both ends.
            tokio::task::yield_now().await;
        }
        let counts = vendor.server.counts();
        assert_eq!((counts.calls, counts.connections), (3, 1), "{wire:?}");
    }
}

#[tokio::test]
async fn tool_outputs_and_schemas_are_understood() {
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"] });
    let history = vec![
        HistoryEntry::User(vec![InputPart::Text("MOCK call name=look".into())]),
        HistoryEntry::Call {
            id: "c1",
            name: "look",
            arguments: "{}",
            form: CallForm::Function,
        },
        HistoryEntry::Output {
            call: "c1",
            text: "a loom",
            images: Vec::new(),
            failed: false,
        },
    ];
    for wire in WireFormat::ALL
        .into_iter()
        .filter(|it| *it != WireFormat::Responses)
    {
        let vendor = Vendor::in_memory("").on(wire);
        let mut question = ModelQuery {
            model: "mock",
            history: history.clone(),
            ..ModelQuery::default()
        };
        for (schema, expected) in [
            (None, "The tool said: a loom"),
            (Some(&schema), r#"{"title":"a loom"}"#),
        ] {
            question.output_schema = schema;
            let stream = vendor.question(&question).await.expect("an answer");
            let events = collect_events(stream).await.expect("an answer");
            assert_eq!(streamed_text(&events), expected, "{wire:?}");
        }
    }
}

/// Sealed content goes back unchanged where the wire needs it.
#[tokio::test]
async fn sealed_content_is_sent_back() {
    let script = r#"
        [[answer]]
        match = "weather"
        steps = [{ reasoning = "Hm." }, { call = "look" }, { call = "look" }]
    "#;
    for (wire, pointer, expected) in [
        (
            WireFormat::Chat,
            "/messages/1/reasoning_content",
            json!("Hm."),
        ),
        (
            WireFormat::Messages,
            "/messages/1/content/0",
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "sealed rs_1_0" }),
        ),
        (
            WireFormat::Gemini,
            "/contents/1/parts/0/thoughtSignature",
            json!("sealed/1/AAA"),
        ),
    ] {
        let vendor = Vendor::in_memory(script).on(wire);
        let events = vendor.events("the weather?").await.expect("an answer");
        let mut history = vec![HistoryEntry::User(vec![InputPart::Text(
            "the weather?".into(),
        )])];
        history.extend(events.iter().filter_map(history_entry));
        let outputs = events.iter().filter_map(|event| match event {
            StreamEvent::Call { call_id, .. } => Some(HistoryEntry::Output {
                call: call_id,
                text: "rain",
                images: Vec::new(),
                failed: false,
            }),
            _ => None,
        });
        history.extend(outputs);
        let question = ModelQuery {
            model: "mock",
            history,
            ..ModelQuery::default()
        };
        vendor.question(&question).await.expect("an answer");
        let requests = vendor.server.requests();
        let body: serde_json::Value = serde_json::from_slice(&requests[1].body).expect("JSON");
        assert_eq!(body.pointer(pointer), Some(&expected), "{wire:?}: {body}");
    }
}

fn history_entry(event: &StreamEvent) -> Option<HistoryEntry<'_>> {
    match event {
        StreamEvent::Reasoning { sealed, .. } => Some(HistoryEntry::Sealed(sealed)),
        StreamEvent::Call {
            call_id,
            name,
            arguments,
            form,
        } => Some(HistoryEntry::Call {
            id: call_id,
            name,
            arguments,
            form: *form,
        }),
        _ => None,
    }
}
