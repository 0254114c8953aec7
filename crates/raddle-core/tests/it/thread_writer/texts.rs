//! Text that grows: told in pieces, and saved so that the pieces can go.

use raddle_core::*;

use super::{append, idle_life};
use crate::fixtures;

#[test]
fn deltas_of_one_round_are_one_record() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    for line in [
        "message i1",
        "text i1 \"a\"",
        "text i1 \"b\"",
        "text i1 \"c\"",
    ] {
        let command = fixtures::command(line, life.owner.thread(), life.now);
        life.report(command);
    }
    let records = append(&mut life.owner, life.now);
    assert_eq!(records.len(), 2);
    let RecordBody::Delta(delta) = &records[1].body else {
        panic!("a delta was expected: {records:?}");
    };
    assert_eq!((delta.offset, delta.text.as_str()), (0, "abc"));
    let told = life.owner.appended(Ok(records[1].seq));
    assert_eq!(
        told.iter()
            .filter(|out| matches!(out, WriterAction::Tell(_)))
            .count(),
        2
    );
}

/// As long as they fit, texts are one record; a text of another part or item is its own.
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
        let mut life = idle_life();
        life.say(r#"start t1 "hi" · message i1 · message i2"#);
        life.report(first());
        life.report(second);
        assert_eq!(append(&mut life.owner, life.now).len(), records);
    }
}

#[test]
fn much_text_is_told_in_pieces() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let begin = fixtures::command("message i1", life.owner.thread(), life.now);
    life.report(begin);
    life.settle();
    let long = "é".repeat(Delta::BYTES_MAX);
    let short = "e".repeat(20_000);
    for text in [long.as_str(), &short, &short] {
        life.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: ItemPart::Text,
            text: text.to_owned(),
        }));
    }
    let mut told = String::new();
    for record in append(&mut life.owner, life.now) {
        if let RecordBody::Delta(delta) = record.body {
            assert!(delta.text.len() <= Delta::BYTES_MAX);
            assert_eq!(delta.offset, told.len() as u64);
            told.push_str(&delta.text);
        }
    }
    assert_eq!(told, format!("{long}{short}{short}"));
}

#[test]
fn a_long_message_is_saved_so_that_its_deltas_can_go() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let command = fixtures::command("message i1", life.owner.thread(), life.now);
    life.report(command);
    let piece = "x".repeat(64 << 10);
    for _ in 0..40 {
        let command = Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: piece.clone(),
        });
        life.report(command);
        life.settle();
    }
    let saved: Vec<usize> = life
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

/// An item is saved once its text since it began, or was saved, is more than 256 KiB and half of it.
#[test]
fn an_item_is_saved_at_its_bound_and_not_before() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi" · message i1"#);
    let bound = 256 << 10;
    for (size, saves) in [(bound, 0), (1, 1), (bound, 1), (1, 1), (1, 2)] {
        life.report(Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: "x".repeat(size),
        }));
        life.settle();
        let saved = life.journal.iter().filter(|record| {
            matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::ItemSaved(_)))
        });
        assert_eq!(saved.count(), saves, "after {size} more");
    }
}

#[test]
fn an_open_item_holds_so_much() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi" · message i1 · text i1 "x""#);
    let more = |size: usize| {
        let command = Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Printed,
            text: "x".repeat(size),
        });
        life.owner.thread().decide(command, life.now).map(|_| ())
    };
    assert_eq!(more((8 << 20) - 1), Ok(()));
    assert_eq!(more(8 << 20), Err(Refusal::ItemFull));
}
