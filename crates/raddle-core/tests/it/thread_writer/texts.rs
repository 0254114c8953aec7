//! Growing text: announced in pieces, and saved so that the pieces can go.

use raddle_core::*;

use super::{append, idle_thread};
use crate::fixtures;

#[test]
fn deltas_of_one_round_are_one_record() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    for line in [
        "message i1",
        "text i1 \"a\"",
        "text i1 \"b\"",
        "text i1 \"c\"",
    ] {
        let command = fixtures::command(line, sim.owner.thread(), sim.now);
        sim.report(command);
    }
    let records = append(&mut sim.owner, sim.now);
    assert_eq!(records.len(), 2);
    let RecordBody::Delta(delta) = &records[1].body else {
        panic!("a delta was expected: {records:?}");
    };
    assert_eq!((delta.offset, delta.text.as_str()), (0, "abc"));
    let actions = sim.owner.appended(Ok(records[1].seq));
    assert_eq!(
        actions
            .iter()
            .filter(|action| matches!(action, WriterAction::Announce(_)))
            .count(),
        2
    );
}

/// While they fit, texts share a record; text of another part or item has its own.
#[test]
fn texts_of_one_round_share_a_record_up_to_its_bound() {
    let text = |item: &str, part: ItemPart, size: usize| {
        Command::AppendText(AppendText {
            item: item.into(),
            part,
            text: "x".repeat(size),
        })
    };
    let first = || text("i1", ItemPart::Text, 20_000);
    let rest = Delta::BYTES_MAX - 20_000;
    for (second, records) in [
        (text("i1", ItemPart::Text, rest), 1),
        (text("i1", ItemPart::Text, rest + 1), 2),
        (text("i1", ItemPart::Printed, 1), 2),
        (text("i2", ItemPart::Text, 1), 2),
    ] {
        let mut sim = idle_thread();
        sim.run_line(r#"start t1 "hi" · message i1 · message i2"#);
        sim.report(first());
        sim.report(second);
        assert_eq!(append(&mut sim.owner, sim.now).len(), records);
    }
}

#[test]
fn long_text_is_announced_in_pieces() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    let begin = fixtures::command("message i1", sim.owner.thread(), sim.now);
    sim.report(begin);
    sim.settle();
    let long = "é".repeat(Delta::BYTES_MAX);
    let short = "e".repeat(20_000);
    for text in [long.as_str(), &short, &short] {
        sim.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: ItemPart::Text,
            text: text.to_owned(),
        }));
    }
    let mut announced = String::new();
    for record in append(&mut sim.owner, sim.now) {
        if let RecordBody::Delta(delta) = record.body {
            assert!(delta.text.len() <= Delta::BYTES_MAX);
            assert_eq!(delta.offset, announced.len() as u64);
            announced.push_str(&delta.text);
        }
    }
    assert_eq!(announced, format!("{long}{short}{short}"));
}

#[test]
fn a_long_message_is_saved_so_that_its_deltas_can_go() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    let command = fixtures::command("message i1", sim.owner.thread(), sim.now);
    sim.report(command);
    let piece = "x".repeat(64 << 10);
    for _ in 0..40 {
        let command = Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: piece.clone(),
        });
        sim.report(command);
        sim.settle();
    }
    let saved: Vec<usize> = sim
        .journal
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Event(event) => match &**event {
                Event::ItemSaved(it) => Some(it.texts[0].text.len()),
                _ => None,
            },
            RecordBody::Delta(_) => None,
        })
        .collect();
    let total: usize = saved.iter().sum();
    assert!(saved.len() >= 3, "{saved:?}");
    assert!(
        total < 3 * 40 * piece.len(),
        "{total} bytes saved for {}",
        40 * piece.len()
    );
}

/// An item is saved once its text since it began, or was saved, is more than 256 KiB and half of
/// it.
#[test]
fn an_item_is_saved_at_its_bound_and_not_before() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi" · message i1"#);
    let bound = 256 << 10;
    for (size, saves) in [(bound, 0), (1, 1), (bound, 1), (1, 1), (1, 2)] {
        sim.report(Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: "x".repeat(size),
        }));
        sim.settle();
        let saved = sim.journal.iter().filter(|record| {
            matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::ItemSaved(_)))
        });
        assert_eq!(saved.count(), saves, "after {size} more");
    }
}

#[test]
fn an_open_item_has_a_maximum_of_text() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi" · message i1 · text i1 "x""#);
    let more = |size: usize| {
        let command = Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Printed,
            text: "x".repeat(size),
        });
        sim.owner.thread().decide(command, sim.now).map(|_| ())
    };
    assert_eq!(more((8 << 20) - 1), Ok(()));
    assert_eq!(more(8 << 20), Err(Refusal::ItemFull));
}
