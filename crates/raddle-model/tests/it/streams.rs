//! `streams/WIRE/NAME.sse` holds an answer as it may come, `NAME.said` its events.
//! `RADDLE_GOLDEN=write` rewrites the latter, to be reviewed as a diff.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use raddle_model::{AnswerReader, CallError, ITEMS_MAX, StreamEvent, WireFormat};

type EventResult = Result<StreamEvent, CallError>;

/// Returns the events of an answer that comes in these pieces.
fn rendered<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    events(wire, pieces).iter().map(line).collect()
}

fn events<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<EventResult> {
    let mut reader = AnswerReader::new(wire);
    for piece in pieces {
        reader.push(piece);
    }
    reader.end();
    std::iter::from_fn(|| reader.next_event()).collect()
}

fn line(event: &EventResult) -> String {
    match event {
        Ok(StreamEvent::Started { id, kind }) => format!("{id} started {kind:?}\n"),
        Ok(StreamEvent::Text { id, text }) => format!("{id} text {text:?}\n"),
        Ok(StreamEvent::Summary { id, text, .. }) => format!("{id} summary {text:?}\n"),
        Ok(StreamEvent::Thought { id, text, .. }) => format!("{id} thought {text:?}\n"),
        Ok(StreamEvent::Message {
            id, text, sealed, ..
        }) => match sealed {
            Some(sealed) => format!("{id} message {text:?} {sealed}\n"),
            None => format!("{id} message {text:?}\n"),
        },
        Ok(StreamEvent::Reasoning {
            id,
            summary,
            content,
            sealed,
        }) => format!("{id} reasoning {summary:?} {content:?} {sealed}\n"),
        Ok(StreamEvent::Call {
            call_id,
            name,
            arguments,
            ..
        }) => format!("call {call_id} {name} {arguments}\n"),
        Ok(StreamEvent::Completed(tokens)) => format!("completed {tokens:?}\n"),
        Err(CallError::Vendor(error)) => format!("failed {:?}: {}\n", error.fault, error.message),
        Err(error) => format!("{error}\n"),
    }
}

fn check(wire: WireFormat, stream: &Path) {
    let bytes = std::fs::read(stream).expect("a stream");
    let rendered_whole = rendered(wire, [&bytes[..]]);
    let file = stream.with_extension("said");
    if std::env::var_os("RADDLE_GOLDEN").is_some_and(|it| it == "write") {
        std::fs::write(&file, &rendered_whole).expect("a file");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(rendered_whole, expected, "{}", stream.display());
    for at in 0..bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(
            rendered(wire, [before, after]),
            rendered_whole,
            "{stream:?} at {at}"
        );
    }
    let text = String::from_utf8(bytes).expect("a text");
    for bytes in [text.clone(), text.replace('\n', "\r\n")] {
        for size in [1, 2, 3, 5, 64, bytes.len()] {
            let pieces_rendered = rendered(wire, bytes.as_bytes().chunks(size));
            assert_eq!(
                pieces_rendered, rendered_whole,
                "{stream:?} in pieces of {size}"
            );
        }
    }
}

/// Returns the streams of a wire.
fn streams(wire: WireFormat) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/streams");
    let files = std::fs::read_dir(folder.join(wire.name())).expect("streams of each wire");
    let files = files.map(|it| it.expect("a file").path());
    let streams: Vec<_> = files
        .filter(|it| it.extension().is_some_and(|it| it == "sse"))
        .collect();
    assert!(streams.len() > 2, "{streams:?}");
    streams
}

#[test]
fn answers_are_read_however_they_are_cut() {
    for wire in WireFormat::ALL {
        for stream in streams(wire) {
            check(wire, &stream);
        }
    }
}

/// Whatever is missing or repeated, an answer ends once, and no event names an item that was not
/// started.
#[test]
fn answers_end_whatever_is_missing() {
    for wire in WireFormat::ALL {
        for stream in streams(wire) {
            let text = std::fs::read_to_string(&stream).expect("a text");
            let parts: Vec<&str> = text.split_inclusive("\n\n").collect();
            for at in 0..parts.len() {
                let mut without = parts.clone();
                without.remove(at);
                let mut twice = parts.clone();
                twice.insert(at, parts[at]);
                let mut last = parts.clone();
                last.swap(at, parts.len() - 1);
                for damaged in [without, twice, last] {
                    require_end(wire, &damaged.concat());
                }
            }
        }
    }
}

fn require_end(wire: WireFormat, answer: &str) {
    let events = events(wire, [answer.as_bytes()]);
    let is_end = |it: &EventResult| matches!(it, Ok(StreamEvent::Completed(_)) | Err(_));
    let (last, before) = events.split_last().expect("an end");
    assert!(is_end(last) && !before.iter().any(is_end), "{answer}");
    let mut started = BTreeSet::new();
    for event in before.iter().flatten() {
        match event {
            StreamEvent::Started { id, .. } => drop(started.insert(id.clone())),
            StreamEvent::Text { id, .. }
            | StreamEvent::Summary { id, .. }
            | StreamEvent::Thought { id, .. }
            | StreamEvent::Message { id, .. }
            | StreamEvent::Reasoning { id, .. } => assert!(started.contains(id), "{answer}"),
            StreamEvent::Call { .. } | StreamEvent::Completed(_) => {}
        }
    }
}

/// Events that each start an item, a part or a call; `N` is the number of the event.
#[rustfmt::skip]
const START_EVENTS: &[(WireFormat, &str)] = &[
    (WireFormat::Responses, r#"{"type": "response.output_item.added", "output_index": N, "item": {"id": "iN", "type": "reasoning"}}"#),
    (WireFormat::Responses, r#"{"type": "response.output_item.added", "item": {"id": "iN", "type": "message"}}"#),
    (WireFormat::Responses, r#"{"type": "response.output_item.done", "output_index": N, "item": {"id": "iN", "type": "message", "content": [{"text": "x"}]}}"#),
    (WireFormat::Responses, r#"{"type": "response.output_item.done", "item": {"type": "function_call", "call_id": "cN", "name": "f", "arguments": "{}"}}"#),
    (WireFormat::Responses, r#"{"type": "response.output_text.delta", "item_id": "iN", "delta": "x"}"#),
    (WireFormat::Responses, r#"{"type": "response.reasoning_summary_text.delta", "item_id": "i", "summary_index": N, "delta": "x"}"#),
    (WireFormat::Responses, r#"{"type": "response.reasoning_text.delta", "item_id": "i", "content_index": N, "delta": "x"}"#),
    (WireFormat::Messages, r#"{"type": "content_block_start", "index": N, "content_block": {"type": "text", "text": "x"}}"#),
    (WireFormat::Messages, r#"{"type": "content_block_start", "index": N, "content_block": {"type": "redacted_thinking", "data": "x"}}"#),
    (WireFormat::Messages, r#"{"type": "content_block_start", "index": N, "content_block": {"type": "tool_use", "id": "cN", "name": "f", "input": {}}}"#),
    (WireFormat::Chat, r#"{"choices": [{"delta": {"content": "x", "reasoning_content": "y"}}]}"#),
    (WireFormat::Chat, r#"{"choices": [{"delta": {"tool_calls": [{"index": N, "id": "cN", "function": {"name": "f", "arguments": "{}"}}]}}]}"#),
    (WireFormat::Gemini, r#"{"candidates": [{"content": {"parts": [{"text": "x", "thought": true}, {"text": "y"}]}}]}"#),
    (WireFormat::Gemini, r#"{"candidates": [{"content": {"parts": [{"functionCall": {"id": "cN", "name": "f", "args": {}}}]}}]}"#),
];

/// The item limit bounds the cost of an answer, however many more events come.
#[test]
fn an_answer_begins_no_more_items_than_it_may() {
    let answer = |event: &str, count: usize| -> String {
        let event = |number: usize| event.replace('N', &number.to_string());
        (0..count)
            .map(|it| format!("data: {}\n\n", event(it)))
            .collect()
    };
    for (wire, event) in START_EVENTS {
        let few = events(*wire, [answer(event, 200).as_bytes()]);
        let event_count = few.iter().flatten().count();
        let is_complete = few.last().is_some_and(|it| match it {
            Err(CallError::BrokeOff(_)) => true,
            Ok(_) | Err(_) => false,
        });
        assert!(is_complete, "{event}: {:?}", few.last());
        for count in [3, 6].map(|it| it * ITEMS_MAX) {
            let many = events(*wire, [answer(event, count).as_bytes()]);
            assert!(
                many.iter().flatten().count() <= event_count.max(1) * ITEMS_MAX / 200 + 8,
                "{event}"
            );
            let error = many.last().expect("an end").as_ref().expect_err(event);
            assert_eq!(
                error.to_string(),
                "the model's answer cannot be read: it has more than 1024 items",
                "{event}"
            );
        }
    }
}
