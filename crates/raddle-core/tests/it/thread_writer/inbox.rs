//! Bounds of the inbox and of one round.

use raddle_core::*;

use super::{append, idle_thread};
use crate::fixtures;

/// Clients and work have separate capacities, so that neither blocks the other.
#[test]
fn envelopes_beyond_capacity_are_returned() {
    let mut sim = idle_thread();
    let report = || Envelope::report(Command::Warn("w".to_owned()));
    let command = |number: u64| Envelope::command(Token(number), fixtures::rename(None));
    for _ in 0..1024 {
        assert!(sim.owner.has_capacity());
        assert_eq!(sim.owner.offer(report()), Ok(()));
    }
    assert!(!sim.owner.has_capacity());
    assert_eq!(sim.owner.offer(report()), Err(Box::new(report())));
    for number in 0..256 {
        assert_eq!(sim.owner.offer(command(number)), Ok(()));
    }
    assert_eq!(sim.owner.offer(command(256)), Err(Box::new(command(256))));
    sim.settle();
    assert_eq!(sim.replies.len(), 256);
    assert!(sim.owner.has_capacity());
}

/// A round ends with the report that fills it, and the rest follows in the next one.
#[test]
fn a_round_has_a_maximum_of_text() {
    for (size, pieces) in [(64 << 10, 10), (1 << 10, 400)] {
        let mut sim = idle_thread();
        sim.run_line(r#"start t1 "hi" · message i1"#);
        for _ in 0..pieces {
            sim.report(Command::AppendText(AppendText {
                item: "i1".into(),
                part: ItemPart::Text,
                text: "x".repeat(size),
            }));
        }
        let records = append(&mut sim.owner, sim.now);
        let texts = records.iter().map(|record| match &record.body {
            RecordBody::Delta(delta) => delta.text.len(),
            RecordBody::Event(event) => panic!("not expected: {event:?}"),
        });
        assert_eq!(texts.sum::<usize>(), 256 << 10, "pieces of {size}");
    }
}

#[test]
fn a_round_has_a_maximum_of_records() {
    let mut sim = idle_thread();
    for _ in 0..600 {
        sim.report(Command::Warn("w".to_owned()));
    }
    let records = append(&mut sim.owner, sim.now);
    assert_eq!(records.len(), 512);
    sim.owner.appended(Ok(records[511].seq));
    assert_eq!(append(&mut sim.owner, sim.now).len(), 88);
}

/// A full round never delays clients.
#[test]
fn a_full_round_still_accepts_every_client() {
    let mut sim = idle_thread();
    let long = "x".repeat(300 << 10);
    for number in 0..3 {
        sim.send_command(fixtures::rename(Some(format!("{long}{number}"))));
    }
    sim.report(Command::Warn("w".to_owned()));
    assert_eq!(append(&mut sim.owner, sim.now).len(), 3);
}
