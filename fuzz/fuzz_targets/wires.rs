//! Answers of models in pieces of any size against the same answers at once, on every wire.
//!
//! The first byte of an input is the wire, the second begins the sizes of the pieces, the rest is the answer.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_model::{AnswerReader, CallError, StreamEvent, WireFormat};

type Heard = Vec<Result<StreamEvent, CallError>>;

fuzz::target!(|input: &[u8]| {
    let [wire, seed, answer @ ..] = input else {
        return;
    };
    let wire = WireFormat::ALL[usize::from(*wire) % WireFormat::ALL.len()];
    let whole = heard(wire, [answer]);
    assert_eq!(heard(wire, pieces(answer, *seed)), whole);
    check(wire, &whole);
});

fn heard<'a>(wire: WireFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> Heard {
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
        // Mostly small pieces, sometimes none.
        let length = ((size >> 24) as usize % 40).min(answer.len());
        let (piece, rest) = answer.split_at(length);
        let is_over = answer.is_empty();
        answer = rest;
        (!is_over).then_some(piece)
    })
}

/// An answer ends once, and what grew is what is whole in the end.
fn check(wire: WireFormat, heard: &Heard) {
    let (last, before) = heard.split_last().expect("an end");
    assert!(matches!(last, Ok(StreamEvent::Completed(_)) | Err(_)));
    let mut grown: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for event in before {
        match event.as_ref().expect("the end is last") {
            StreamEvent::Completed(_) => panic!("it ended before its end"),
            StreamEvent::Started { id, .. } => {
                let was = grown.insert(id.clone(), String::new());
                assert!(
                    was.is_none() || wire == WireFormat::Responses,
                    "{id} began twice"
                );
            }
            StreamEvent::Text { id, text }
            | StreamEvent::Summary { id, text, .. }
            | StreamEvent::Thought { id, text, .. } => {
                grown.get_mut(id).expect("it was begun").push_str(text);
            }
            // There a vendor says what is whole, whatever it said before.
            _ if wire == WireFormat::Responses => {}
            StreamEvent::Message { id, text, .. } => {
                assert_eq!(grown.remove(id).as_ref(), Some(text))
            }
            StreamEvent::Reasoning {
                id,
                summary,
                content,
                ..
            } => {
                let text = [&summary[..], content].concat().concat();
                assert_eq!(grown.remove(id), Some(text));
            }
            StreamEvent::Call { .. } => {}
        }
    }
    let is_whole = last.is_ok() && wire != WireFormat::Responses;
    assert!(!is_whole || grown.is_empty(), "{grown:?} is not whole");
}
