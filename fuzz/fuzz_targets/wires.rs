//! Answers of models in pieces of any size against the same answers at once, on every wire.
//!
//! The first byte of an input is the wire, the second begins the sizes of the pieces, the rest is the answer.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_model::{CallError, Event, Reading, Wire};

type Heard = Vec<Result<Event, CallError>>;

raddle_fuzz::target!(|input: &[u8]| {
    let [wire, seed, answer @ ..] = input else {
        return;
    };
    let wire = Wire::ALL[usize::from(*wire) % Wire::ALL.len()];
    let whole = heard(wire, [answer]);
    assert_eq!(heard(wire, pieces(answer, *seed)), whole);
    check(wire, &whole);
});

fn heard<'a>(wire: Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> Heard {
    let mut reading = Reading::new(wire);
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
fn check(wire: Wire, heard: &Heard) {
    let (last, before) = heard.split_last().expect("an end");
    assert!(matches!(last, Ok(Event::Completed(_)) | Err(_)));
    let mut grown: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for event in before {
        match event.as_ref().expect("the end is last") {
            Event::Completed(_) => panic!("it ended before its end"),
            Event::Started { id, .. } => {
                let was = grown.insert(id.clone(), String::new());
                assert!(was.is_none() || wire == Wire::Responses, "{id} began twice");
            }
            Event::Text { id, text }
            | Event::Summary { id, text, .. }
            | Event::Thought { id, text, .. } => {
                grown.get_mut(id).expect("it was begun").push_str(text);
            }
            // There a vendor says what is whole, whatever it said before.
            _ if wire == Wire::Responses => {}
            Event::Message { id, text, .. } => assert_eq!(grown.remove(id).as_ref(), Some(text)),
            Event::Reasoning {
                id,
                summary,
                content,
                ..
            } => {
                let text = [&summary[..], content].concat().concat();
                assert_eq!(grown.remove(id), Some(text));
            }
            Event::Call { .. } => {}
        }
    }
    let is_whole = last.is_ok() && wire != Wire::Responses;
    assert!(!is_whole || grown.is_empty(), "{grown:?} is not whole");
}
