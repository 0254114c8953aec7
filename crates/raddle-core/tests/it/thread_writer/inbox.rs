//! The inbox is bounded, and so is what one round takes from it.

use raddle_core::*;

use super::{append, idle_life};
use crate::fixtures;

/// Clients and work have room of their own, so that neither shuts the other out.
#[test]
fn what_has_no_room_is_given_back() {
    let mut life = idle_life();
    let report = || Envelope::report(Command::Warn("w".to_owned()));
    let order = |number: u64| Envelope::command(Token(number), fixtures::rename(None));
    for _ in 0..1024 {
        assert!(life.owner.has_capacity());
        assert_eq!(life.owner.offer(report()), Ok(()));
    }
    assert!(!life.owner.has_capacity());
    assert_eq!(life.owner.offer(report()), Err(Box::new(report())));
    for number in 0..256 {
        assert_eq!(life.owner.offer(order(number)), Ok(()));
    }
    assert_eq!(life.owner.offer(order(256)), Err(Box::new(order(256))));
    life.settle();
    assert_eq!(life.replies.len(), 256);
    assert!(life.owner.has_capacity());
}

/// A round ends with the report that fills it, and the rest comes in the next one.
#[test]
fn a_round_takes_so_much_text() {
    for (size, pieces) in [(64 << 10, 10), (1 << 10, 400)] {
        let mut life = idle_life();
        life.say(r#"start t1 "hi" · message i1"#);
        for _ in 0..pieces {
            life.report(Command::AppendText(AppendText {
                item: "i1".into(),
                part: ItemPart::Text,
                text: "x".repeat(size),
            }));
        }
        let records = append(&mut life.owner, life.now);
        let texts = records.iter().map(|record| match &record.body {
            RecordBody::Delta(delta) => delta.text.len(),
            RecordBody::Event(event) => panic!("not expected: {event:?}"),
        });
        assert_eq!(texts.sum::<usize>(), 256 << 10, "pieces of {size}");
    }
}

#[test]
fn a_round_takes_so_many_records() {
    let mut life = idle_life();
    for _ in 0..600 {
        life.report(Command::Warn("w".to_owned()));
    }
    let records = append(&mut life.owner, life.now);
    assert_eq!(records.len(), 512);
    life.owner.appended(Ok(records[511].seq));
    assert_eq!(append(&mut life.owner, life.now).len(), 88);
}

/// Clients wait for no room in a round.
#[test]
fn a_full_round_still_takes_every_client() {
    let mut life = idle_life();
    let long = "x".repeat(300 << 10);
    for number in 0..3 {
        life.order(fixtures::rename(Some(format!("{long}{number}"))));
    }
    life.report(Command::Warn("w".to_owned()));
    assert_eq!(append(&mut life.owner, life.now).len(), 3);
}
