//! Numbers: none is used twice, and a client comes back with one that still means something.

use raddle_core::*;

use super::{append, idle_life};
use crate::fixtures;
use crate::simulated::{SimulatedThread, fold};

#[test]
fn who_subscribes_meets_the_stream_without_a_gap() {
    let mut life = idle_life();
    let seen = life.owner.stored();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let token = Token(77);
    let subscribe = Envelope::Subscribe {
        token,
        seen: Some(seen),
    };
    life.owner.offer(subscribe).expect("room");
    let records = append(&mut life.owner, life.now);
    let head = records[records.len() - 1].seq;
    let outs = life.owner.appended(Ok(head));
    let settled = outs.iter().find_map(|out| match out {
        WriterAction::Subscribed(settled) => Some(*settled),
        _ => None,
    });
    let wanted = SubscriptionStart {
        token,
        cursor: CursorStatus::Good,
        after: seen,
        head,
    };
    assert_eq!(settled, Some(wanted));
}

#[test]
fn numbers_that_may_have_been_told_are_not_used_again() {
    let mut life = idle_life();
    let head = life.owner.stored();
    let reserved = life.owner.thread().reserved();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let seen = life.owner.stored();

    // The power goes, and with it everything after the first head.
    life.journal.retain(|record| record.seq <= head);
    life.crash();
    life.settle();
    let thread = fold(&life.journal);
    let first = life.journal.iter().find(|record| record.seq > head);
    assert_eq!(first.map(|record| record.seq), Some(reserved.next()));
    assert_eq!(thread.cursor(seen), CursorStatus::Expired);
    assert_eq!(thread.cursor(head), CursorStatus::Good);
    assert_eq!(thread.cursor(thread.head()), CursorStatus::Good);
    assert_eq!(thread.cursor(thread.head().next()), CursorStatus::Expired);
    assert_eq!(thread.cursor(Seq::ZERO), CursorStatus::Good);
    assert_eq!(thread.cursor(Seq(1)), CursorStatus::Good);
}

#[test]
fn an_owner_that_leaves_in_good_order_leaves_no_gap() {
    let mut life = idle_life();
    life.order(Command::Release);
    life.settle();
    let head = life.journal.last().map(|record| record.seq);
    let thread = life.owner.thread();
    assert_eq!((thread.node(), thread.owner()), (Some("n1"), None));
    life.crash();
    life.settle();
    let next = life.journal.iter().find(|record| Some(record.seq) > head);
    assert_eq!(next.map(|record| record.seq), head.map(Seq::next));
    let thread = life.owner.thread();
    assert_eq!((thread.node(), thread.owner()), (Some("n2"), Some("n2")));
}

/// Who comes back from before a stretch of lost numbers that is no longer remembered needs a snapshot.
#[test]
fn so_many_stretches_of_lost_numbers_are_remembered() {
    let mut life = idle_life();
    for death in 1..=65 {
        assert_eq!(
            life.owner.thread().cursor(Seq(1)),
            CursorStatus::Good,
            "{death}"
        );
        life.crash();
        life.settle();
    }
    let thread = life.owner.thread();
    let first = life.journal.iter().find(|record| record.seq > Seq(2));
    let first = first.expect("the second owner's barrier").seq;
    assert_eq!(thread.cursor(Seq(1)), CursorStatus::Expired);
    assert_eq!(thread.cursor(first), CursorStatus::Good);
}

/// An owner that leaves in good order loses no number, so nothing is to be remembered of it.
#[test]
fn nothing_is_lost_where_every_owner_leaves_in_good_order() {
    let mut life = idle_life();
    for _ in 0..100 {
        life.order(Command::Release);
        life.settle();
        life.crash();
        life.settle();
    }
    assert_eq!(life.owner.thread().cursor(Seq(1)), CursorStatus::Good);
}

#[test]
fn the_reserve_is_renewed_before_it_is_passed() {
    let mut life = idle_life();
    for number in 0..12_000 {
        life.order(crate::fixtures::rename(Some(number.to_string())));
        life.settle();
        assert!(life.owner.stored() <= fold_reserved(&life), "at {number}");
    }
    let renewals = life.journal.iter().filter(|record| {
        matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::Reserved(_)))
    });
    // Every half of a reserve.
    assert_eq!(renewals.count(), 2);
}

fn fold_reserved(life: &SimulatedThread) -> Seq {
    life.owner.thread().reserved()
}

#[test]
fn a_client_that_saw_less_than_was_saved_needs_a_snapshot() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let before = life.owner.stored();
    life.say("message i1");
    let began = life.owner.stored();
    let piece = |size| {
        Command::AppendText(AppendText {
            item: "i1".into(),
            part: ItemPart::Text,
            text: "x".repeat(size),
        })
    };
    life.report(piece(10));
    life.settle();
    let in_between = life.owner.stored();
    assert_eq!(life.owner.thread().cursor(in_between), CursorStatus::Good);
    life.report(piece(300 << 10));
    life.settle();
    let saved = life.owner.stored();
    let thread = life.owner.thread();
    // It hears of the item's beginning, and then all its text at once.
    assert_eq!(thread.cursor(before), CursorStatus::Good);
    assert_eq!(thread.cursor(began), CursorStatus::Expired);
    assert_eq!(thread.cursor(in_between), CursorStatus::Expired);
    assert_eq!(thread.cursor(saved), CursorStatus::Good);
    // Once the item is whole, its last form is all anyone needs.
    life.say("done");
    assert_eq!(life.owner.thread().cursor(in_between), CursorStatus::Good);
}
