//! Numbers of records: none is used twice, and cursors stay valid or are rejected.

use raddle_core::*;

use super::{append, idle_thread};
use crate::fixtures;
use crate::simulated::{SimulatedThread, fold};

#[test]
fn a_subscription_continues_without_a_gap() {
    let mut sim = idle_thread();
    let cursor = sim.owner.stored();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let token = Token(77);
    let subscribe = Envelope::Subscribe {
        token,
        cursor: Some(cursor),
    };
    sim.owner.offer(subscribe).expect("capacity");
    let records = append(&mut sim.owner, sim.now);
    let head = records[records.len() - 1].seq;
    let actions = sim.owner.appended(Ok(head));
    let start = actions.iter().find_map(|action| match action {
        WriterAction::Subscribed(start) => Some(*start),
        _ => None,
    });
    let expected = SubscriptionStart {
        token,
        cursor: CursorStatus::Good,
        after: cursor,
        head,
    };
    assert_eq!(start, Some(expected));
}

#[test]
fn numbers_that_may_have_been_announced_are_not_reused() {
    let mut sim = idle_thread();
    let head = sim.owner.stored();
    let reserved = sim.owner.thread().reserved();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    let cursor = sim.owner.stored();

    // Loss of power removes everything after the first head.
    sim.journal.retain(|record| record.seq <= head);
    sim.crash();
    sim.settle();
    let thread = fold(&sim.journal);
    let first = sim.journal.iter().find(|record| record.seq > head);
    assert_eq!(first.map(|record| record.seq), Some(reserved.next()));
    assert_eq!(thread.cursor(cursor), CursorStatus::Expired);
    assert_eq!(thread.cursor(head), CursorStatus::Good);
    assert_eq!(thread.cursor(thread.head()), CursorStatus::Good);
    assert_eq!(thread.cursor(thread.head().next()), CursorStatus::Expired);
    assert_eq!(thread.cursor(Seq::ZERO), CursorStatus::Good);
    assert_eq!(thread.cursor(Seq(1)), CursorStatus::Good);
}

#[test]
fn a_clean_release_leaves_no_gap() {
    let mut sim = idle_thread();
    sim.send_command(Command::Release);
    sim.settle();
    let head = sim.journal.last().map(|record| record.seq);
    let thread = sim.owner.thread();
    assert_eq!((thread.node(), thread.owner()), (Some("n1"), None));
    sim.crash();
    sim.settle();
    let next = sim.journal.iter().find(|record| Some(record.seq) > head);
    assert_eq!(next.map(|record| record.seq), head.map(Seq::next));
    let thread = sim.owner.thread();
    assert_eq!((thread.node(), thread.owner()), (Some("n2"), Some("n2")));
}

/// A cursor from before a range of lost numbers that is no longer kept needs a snapshot.
#[test]
fn a_maximum_of_lost_ranges_is_kept() {
    let mut sim = idle_thread();
    for death in 1..=65 {
        assert_eq!(
            sim.owner.thread().cursor(Seq(1)),
            CursorStatus::Good,
            "{death}"
        );
        sim.crash();
        sim.settle();
    }
    let thread = sim.owner.thread();
    let first = sim.journal.iter().find(|record| record.seq > Seq(2));
    let first = first.expect("the second owner's barrier").seq;
    assert_eq!(thread.cursor(Seq(1)), CursorStatus::Expired);
    assert_eq!(thread.cursor(first), CursorStatus::Good);
}

/// A clean release loses no number, so no lost range is kept.
#[test]
fn clean_releases_never_expire_cursors() {
    let mut sim = idle_thread();
    for _ in 0..100 {
        sim.send_command(Command::Release);
        sim.settle();
        sim.crash();
        sim.settle();
    }
    assert_eq!(sim.owner.thread().cursor(Seq(1)), CursorStatus::Good);
}

#[test]
fn the_reserve_is_renewed_before_it_is_passed() {
    let mut sim = idle_thread();
    for number in 0..12_000 {
        sim.send_command(crate::fixtures::rename(Some(number.to_string())));
        sim.settle();
        assert!(sim.owner.stored() <= fold_reserved(&sim), "at {number}");
    }
    let renewals = sim.journal.iter().filter(|record| {
        matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::Reserved(_)))
    });
    // Every half of a reserve.
    assert_eq!(renewals.count(), 2);
}

fn fold_reserved(sim: &SimulatedThread) -> Seq {
    sim.owner.thread().reserved()
}

#[test]
fn a_cursor_inside_saved_text_needs_a_snapshot() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    let before = sim.owner.stored();
    sim.run_line("message i1");
    let began = sim.owner.stored();
    let piece = |size| {
        Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: "x".repeat(size),
        })
    };
    sim.report(piece(10));
    sim.settle();
    let in_between = sim.owner.stored();
    assert_eq!(sim.owner.thread().cursor(in_between), CursorStatus::Good);
    sim.report(piece(300 << 10));
    sim.settle();
    let saved = sim.owner.stored();
    let thread = sim.owner.thread();
    // The client receives the start of the item, and then all its text at once.
    assert_eq!(thread.cursor(before), CursorStatus::Good);
    assert_eq!(thread.cursor(began), CursorStatus::Expired);
    assert_eq!(thread.cursor(in_between), CursorStatus::Expired);
    assert_eq!(thread.cursor(saved), CursorStatus::Good);
    // Once the item is complete, its final form suffices for every client.
    sim.run_line("done");
    assert_eq!(sim.owner.thread().cursor(in_between), CursorStatus::Good);
}
