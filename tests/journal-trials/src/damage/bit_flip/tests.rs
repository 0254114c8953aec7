use raddle_core::{Delta, Event, ItemPart, RecordBody, Renamed, Seq, Timestamp};

use super::*;

fn named(seq: u64, name: &str) -> Record {
    let name = Some(name.to_owned());
    let principal = None;
    Record {
        seq: Seq(seq),
        at: Timestamp(0),
        body: Event::Renamed(Renamed { name, principal }).into(),
    }
}

fn piece(seq: u64) -> Record {
    Record {
        seq: Seq(seq),
        at: Timestamp(0),
        body: RecordBody::Delta(Delta {
            item: "i".into(),
            part: ItemPart::Text,
            offset: 0,
            text: "x".to_owned(),
        }),
    }
}

#[test]
fn an_earlier_moment_is_a_beginning() {
    let truth = [named(1, "a"), named(3, "b"), named(4, "c")];
    assert!(is_earlier(&[], &truth));
    assert!(is_earlier(&truth, &truth));
    assert!(is_earlier(&truth[..2], &truth));
    // A piece of an item that was whole later.
    assert!(is_earlier(&[named(1, "a"), piece(2)], &truth));
}

#[test]
fn anything_else_never_was() {
    let truth = [named(1, "a"), named(3, "b"), named(4, "c")];
    assert!(!is_earlier(&[named(1, "z")], &truth));
    assert!(!is_earlier(&[named(1, "a"), named(4, "c")], &truth));
    assert!(!is_earlier(&[named(1, "a"), named(2, "b")], &truth));
}

#[test]
fn only_text_of_open_items_may_go_unnoticed() {
    let truth = [named(1, "a"), piece(2), piece(3)];
    assert!(lacks_open_text(&truth[..2], &truth));
    assert!(lacks_open_text(&truth[..1], &truth));
    assert!(lacks_open_text(&[named(1, "a"), piece(3)], &truth));
    assert!(!lacks_open_text(&truth, &truth));
    assert!(!lacks_open_text(&[], &truth));
    assert!(!lacks_open_text(&[named(1, "b"), piece(2)], &truth));
}

#[test]
fn what_must_not_happen_is_a_violation() {
    assert!(!DamageOutcome::Refused.is_violation());
    assert!(DamageOutcome::NotSalvaged.is_violation());
    assert!(DamageOutcome::FalseRecord.is_violation());
}
