//! `recorded.jsonl` holds answers as real servers sent them: llama.cpp, aimock and our own mock.
//! Wherever an answer is split, the events are the same, and they match the server's answer in one
//! piece. `tests/clients/record_streams.py` generates the file.

use std::path::Path;

use raddle_model::{AnswerReader, CallError, StreamEvent, WireFormat};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recording {
    from: String,
    wire: String,
    name: String,
    stream: String,
    /// The server's answer in one piece, if it was requested.
    text: Option<String>,
    calls: Option<Vec<(String, String)>>,
}

fn recorded() -> Vec<Recording> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded.jsonl");
    let lines = std::fs::read_to_string(file).expect("recorded answers");
    let answers = lines.lines().map(serde_json::from_str);
    answers.collect::<Result<_, _>>().expect("JSON")
}

fn read_events(wire: WireFormat, pieces: [&[u8]; 2]) -> Vec<Result<StreamEvent, CallError>> {
    let mut reader = AnswerReader::new(wire);
    for piece in pieces {
        reader.push(piece);
    }
    reader.end();
    std::iter::from_fn(|| reader.next_event()).collect()
}

fn check(from: &str, wire: WireFormat) {
    let answers = recorded();
    let is_selected = |it: &&Recording| it.from == from && it.wire == wire.name();
    for answer in answers.iter().filter(is_selected) {
        let bytes = answer.stream.as_bytes();
        let expected = read_events(wire, [bytes, b""]);
        answer.check_against_server(&expected);
        for at in 1..bytes.len() {
            let (before, after) = bytes.split_at(at);
            let events = read_events(wire, [before, after]);
            assert_eq!(events, expected, "{} at {at}", answer.title());
        }
    }
}

impl Recording {
    fn title(&self) -> String {
        format!("{} {} {}", self.from, self.wire, self.name)
    }

    /// Checks that a complete answer matches the server's answer in one piece, and that a truncated
    /// one is recognised.
    fn check_against_server(&self, whole: &[Result<StreamEvent, CallError>]) {
        if let Some(Err(error)) = whole.last() {
            let is_vendor_error = matches!(error, CallError::Vendor(_));
            return assert!(is_vendor_error, "{}: {error}", self.title());
        }
        let last = whole.last();
        let is_whole = matches!(last, Some(Ok(StreamEvent::Completed(_))));
        assert!(is_whole, "{}: {last:?}", self.title());
        let (Some(text), Some(calls)) = (&self.text, &self.calls) else {
            return;
        };
        let texts = whole.iter().filter_map(|it| match it {
            Ok(StreamEvent::Message { text, .. }) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(&texts.collect::<String>(), text, "{}", self.title());
        let called = whole.iter().filter_map(|it| match it {
            Ok(StreamEvent::Call {
                name, arguments, ..
            }) => Some((name.clone(), value(arguments))),
            _ => None,
        });
        let calls = calls
            .iter()
            .map(|(name, arguments)| (name.clone(), value(arguments)));
        assert!(called.eq(calls), "{}: {whole:?}", self.title());
    }
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).expect("arguments")
}

#[test]
fn llama_on_responses() {
    check("llama", WireFormat::Responses);
}

#[test]
fn llama_on_chat() {
    check("llama", WireFormat::Chat);
}

#[test]
fn llama_on_messages() {
    check("llama", WireFormat::Messages);
}

#[test]
fn aimock_on_responses() {
    check("aimock", WireFormat::Responses);
}

#[test]
fn aimock_on_chat() {
    check("aimock", WireFormat::Chat);
}

#[test]
fn aimock_on_messages() {
    check("aimock", WireFormat::Messages);
}

#[test]
fn aimock_on_gemini() {
    check("aimock", WireFormat::Gemini);
}

#[test]
fn mock_on_responses() {
    check("mock", WireFormat::Responses);
}

#[test]
fn mock_on_chat() {
    check("mock", WireFormat::Chat);
}

#[test]
fn mock_on_messages() {
    check("mock", WireFormat::Messages);
}

#[test]
fn mock_on_gemini() {
    check("mock", WireFormat::Gemini);
}

#[test]
fn there_are_enough_of_each() {
    let answers = recorded();
    assert!(answers.len() >= 200, "{}", answers.len());
    for from in ["llama", "aimock"] {
        let count = answers.iter().filter(|it| it.from == from).count();
        assert!(count >= 60, "{from}: {count}");
    }
}
