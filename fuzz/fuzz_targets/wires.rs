//! Model responses in chunks of any size, compared with the same responses at once, on every wire.
//!
//! The first byte of an input is the wire, the second seeds the sizes of the chunks, the rest is
//! the response.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_model::{AnswerReader, CallError, StreamEvent, WireFormat};

type StreamEvents = Vec<Result<StreamEvent, CallError>>;

fuzz::target!(|input: &[u8]| {
    let [wire, seed, answer @ ..] = input else {
        return;
    };
    let wire = WireFormat::ALL[usize::from(*wire) % WireFormat::ALL.len()];
    let at_once = stream_events(wire, [answer]);
    assert_eq!(stream_events(wire, pieces(answer, *seed)), at_once);
    check(wire, &at_once);
});

fn stream_events<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> StreamEvents {
    let mut reading = AnswerReader::new(wire);
    for piece in pieces {
        reading.push(piece);
    }
    reading.end();
    std::iter::from_fn(|| reading.next_event()).collect()
}

fn pieces(mut answer: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut size = u32::from(seed);
    std::iter::from_fn(move || {
        size = size.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Mostly small chunks, sometimes empty ones.
        let length = ((size >> 24) as usize % 40).min(answer.len());
        let (piece, rest) = answer.split_at(length);
        let is_over = answer.is_empty();
        answer = rest;
        (!is_over).then_some(piece)
    })
}

/// Checks that a response ends once, and that the deltas add up to the final text.
fn check(wire: WireFormat, events: &StreamEvents) {
    let (last, before) = events.split_last().expect("an end");
    assert!(matches!(last, Ok(StreamEvent::Completed(_)) | Err(_)));
    let mut texts: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for event in before {
        match event.as_ref().expect("the end is last") {
            StreamEvent::Completed(_) => panic!("it ended before its end"),
            StreamEvent::Started { id, .. } => {
                let was = texts.insert(id.clone(), String::new());
                assert!(
                    was.is_none() || wire == WireFormat::Responses,
                    "{id} began twice"
                );
            }
            StreamEvent::Text { id, text }
            | StreamEvent::Summary { id, text, .. }
            | StreamEvent::Thought { id, text, .. } => {
                texts.get_mut(id).expect("it was begun").push_str(text);
            }
            // On this wire the vendor sends the complete text, regardless of the deltas before.
            _ if wire == WireFormat::Responses => {}
            StreamEvent::Message { id, text, .. } => {
                assert_eq!(texts.remove(id).as_ref(), Some(text))
            }
            StreamEvent::Reasoning {
                id,
                summary,
                content,
                ..
            } => {
                let text = [&summary[..], content].concat().concat();
                assert_eq!(texts.remove(id), Some(text));
            }
            StreamEvent::Call { .. } => {}
        }
    }
    let is_complete = last.is_ok() && wire != WireFormat::Responses;
    assert!(!is_complete || texts.is_empty(), "{texts:?} is not whole");
}
