use raddle_core::{Delta, Event, ItemPart, RecordBody, Renamed, Seq, Timestamp};

use super::*;

fn renamed(seq: u64, name: &str) -> Record {
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
fn a_prefix_is_an_earlier_state() {
    let truth = [renamed(1, "a"), renamed(3, "b"), renamed(4, "c")];
    assert!(is_earlier(&[], &truth));
    assert!(is_earlier(&truth, &truth));
    assert!(is_earlier(&truth[..2], &truth));
    // A delta of an item that was completed later.
    assert!(is_earlier(&[renamed(1, "a"), piece(2)], &truth));
}

#[test]
fn other_records_are_not_an_earlier_state() {
    let truth = [renamed(1, "a"), renamed(3, "b"), renamed(4, "c")];
    assert!(!is_earlier(&[renamed(1, "z")], &truth));
    assert!(!is_earlier(&[renamed(1, "a"), renamed(4, "c")], &truth));
    assert!(!is_earlier(&[renamed(1, "a"), renamed(2, "b")], &truth));
}

#[test]
fn only_text_of_open_items_may_go_unnoticed() {
    let truth = [renamed(1, "a"), piece(2), piece(3)];
    assert!(lacks_open_text(&truth[..2], &truth));
    assert!(lacks_open_text(&truth[..1], &truth));
    assert!(lacks_open_text(&[renamed(1, "a"), piece(3)], &truth));
    assert!(!lacks_open_text(&truth, &truth));
    assert!(!lacks_open_text(&[], &truth));
    assert!(!lacks_open_text(&[renamed(1, "b"), piece(2)], &truth));
}

#[test]
fn forbidden_outcomes_are_violations() {
    assert!(!DamageOutcome::Refused.is_violation());
    assert!(DamageOutcome::NotSalvaged.is_violation());
    assert!(DamageOutcome::FalseRecord.is_violation());
}
