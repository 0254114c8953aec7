//! `recorded.jsonl` holds answers as real servers sent them: llama.cpp, aimock and our own mock. Wherever an answer
//! is split, the same is heard, and it is what the server says of it in one piece. The file is made anew with
//! `tests/clients/record_streams.py`.

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
    /// What the server said of it in one piece, if it was asked for that.
    text: Option<String>,
    calls: Option<Vec<(String, String)>>,
}

fn recorded() -> Vec<Recording> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded.jsonl");
    let lines = std::fs::read_to_string(file).expect("recorded answers");
    let answers = lines.lines().map(serde_json::from_str);
    answers.collect::<Result<_, _>>().expect("JSON")
}

fn heard(wire: WireFormat, pieces: [&[u8]; 2]) -> Vec<Result<StreamEvent, CallError>> {
    let mut reading = AnswerReader::new(wire);
    for piece in pieces {
        reading.push(piece);
    }
    reading.end();
    std::iter::from_fn(|| reading.next_event()).collect()
}

fn check(from: &str, wire: WireFormat) {
    let answers = recorded();
    let is_meant = |it: &&Recording| it.from == from && it.wire == wire.name();
    for answer in answers.iter().filter(is_meant) {
        let bytes = answer.stream.as_bytes();
        let whole = heard(wire, [bytes, b""]);
        answer.check_account(&whole);
        for at in 1..bytes.len() {
            let (before, after) = bytes.split_at(at);
            let found = heard(wire, [before, after]);
            assert_eq!(found, whole, "{} at {at}", answer.title());
        }
    }
}

impl Recording {
    fn title(&self) -> String {
        format!("{} {} {}", self.from, self.wire, self.name)
    }

    /// An answer that ended well says what the server says of it. One that was cut short is known as that.
    fn check_account(&self, whole: &[Result<StreamEvent, CallError>]) {
        if let Some(Err(error)) = whole.last() {
            let is_said = matches!(error, CallError::Vendor(_));
            return assert!(is_said, "{}: {error}", self.title());
        }
        let ended = whole.last();
        let is_whole = matches!(ended, Some(Ok(StreamEvent::Completed(_))));
        assert!(is_whole, "{}: {ended:?}", self.title());
        let (Some(text), Some(calls)) = (&self.text, &self.calls) else {
            return;
        };
        let said = whole.iter().filter_map(|it| match it {
            Ok(StreamEvent::Message { text, .. }) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(&said.collect::<String>(), text, "{}", self.title());
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
        let of = answers.iter().filter(|it| it.from == from).count();
        assert!(of >= 60, "{from}: {of}");
    }
}
