//! The owner's round: what goes out, and when.

use raddle_core::ports::AppendError;
use raddle_core::*;

use crate::life::{Life, fold, node};
use crate::words;

fn append(owner: &mut Owner, now: Timestamp) -> Vec<Record> {
    match owner.step(now) {
        Step::Append { records, .. } => records,
        other => panic!("an append was expected, not {other:?}"),
    }
}

fn idle_life() -> Life {
    let mut life = Life::new();
    life.told.clear();
    life
}

#[test]
fn nothing_goes_out_before_it_is_stored() {
    let mut life = idle_life();
    let token = life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    let records = append(&mut life.owner, life.now);
    assert_eq!(records.len(), 3, "turn, input, call of the model");
    let outs = life.owner.appended(Ok(records[2].seq));
    let kinds: Vec<&str> = outs
        .iter()
        .map(|out| match out {
            Out::Reply(it, Ok(Outcome::Started { .. })) if *it == token => "reply",
            Out::Tell(_) => "tell",
            Out::Start(Effect::CallModel { .. }) => "start",
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["reply", "tell", "tell", "tell", "start"]);
}

#[test]
fn a_conflict_ends_the_task_and_says_nothing() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    let late = life.order(crate::words::rename(Some("x".to_owned())));
    let outs = life.owner.appended(Err(AppendError::Conflict));
    let refused: Vec<Token> = outs
        .iter()
        .map(|out| match out {
            Out::Reply(token, Err(Refusal::OwnedElsewhere)) => *token,
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(refused, [Token(1), late]);
    assert_eq!(
        life.owner.step(life.now),
        Step::Ended(Ended::OwnedElsewhere)
    );
}

#[test]
fn an_unavailable_journal_is_tried_again_with_the_same_records() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    let first = append(&mut life.owner, life.now);
    let away = AppendError::Unavailable("away".to_owned());
    assert_eq!(life.owner.appended(Err(away)), []);
    life.order(crate::words::rename(Some("x".to_owned())));
    assert_eq!(append(&mut life.owner, life.now), first);
}

#[test]
fn a_full_journal_is_said_to_everyone() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    let outs = life
        .owner
        .appended(Err(AppendError::Full("0 bytes left".to_owned())));
    assert!(matches!(
        &outs[..],
        [Out::Reply(_, Err(Refusal::NotStored(_)))]
    ));
    assert!(matches!(
        life.owner.step(life.now),
        Step::Ended(Ended::NotStored(_))
    ));
}

#[test]
fn the_head_settles_a_lost_acknowledgement() {
    for (case, stored, outs) in [("it was stored", true, 5), ("it was not", false, 0)] {
        let mut life = idle_life();
        life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
        let before = life.owner.stored();
        let records = append(&mut life.owner, life.now);
        let lost = AppendError::Unknown("no answer".to_owned());
        assert_eq!(life.owner.appended(Err(lost)), [], "{case}");
        assert_eq!(life.owner.step(life.now), Step::ReadHead, "{case}");
        let head = if stored { records[2].seq } else { before };
        assert_eq!(life.owner.head_is(head).len(), outs, "{case}");
        if !stored {
            assert_eq!(append(&mut life.owner, life.now), records, "{case}");
        }
    }
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    life.owner
        .appended(Err(AppendError::Unknown("no answer".to_owned())));
    life.owner.head_is(Seq(1_000_000));
    assert_eq!(
        life.owner.step(life.now),
        Step::Ended(Ended::OwnedElsewhere)
    );
}

#[test]
fn a_request_that_comes_twice_is_carried_out_once() {
    let mut life = idle_life();
    let key = Key {
        principal: "ann".to_owned(),
        method: "turn/start".to_owned(),
        id: "k1".to_owned(),
    };
    let send = |life: &mut Life, token: u64, turn: &str, asked: &str| {
        let command = words::start_turn(turn, TurnKind::Work, Some("hi"));
        let envelope = Envelope::Command {
            command,
            token: Some(Token(token)),
            key: Some((key.clone(), asked.to_owned())),
        };
        life.owner.offer(envelope).expect("room");
        life.settle();
        life.replies.pop().expect("a reply").1
    };
    let started = Ok(Outcome::Started { turn: "t1".into() });
    assert_eq!(send(&mut life, 1, "t1", "same"), started);
    let records = life.journal.len();
    assert_eq!(send(&mut life, 2, "t2", "same"), started);
    assert_eq!(life.journal.len(), records, "nothing new was stored");
    assert_eq!(send(&mut life, 3, "t3", "other"), Err(Refusal::KeyReused));

    // Also by the next owner.
    life.crash();
    life.settle();
    assert_eq!(send(&mut life, 4, "t4", "same"), started);

    // A day later it is forgotten: the input joins the turn that runs.
    life.now = life.now.plus_ms(25 * 60 * 60 * 1000);
    assert_eq!(
        send(&mut life, 5, "t5", "same"),
        Ok(Outcome::Joined { turn: "t1".into() })
    );
}

#[test]
fn deltas_of_one_round_are_one_record() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    for line in [
        "message i1",
        "text i1 \"a\"",
        "text i1 \"b\"",
        "text i1 \"c\"",
    ] {
        let command = words::command(line, life.owner.thread(), life.now);
        life.report(command);
    }
    let records = append(&mut life.owner, life.now);
    assert_eq!(records.len(), 2);
    let Body::Delta(delta) = &records[1].body else {
        panic!("a delta was expected: {records:?}");
    };
    assert_eq!((delta.offset, delta.text.as_str()), (0, "abc"));
    let told = life.owner.appended(Ok(records[1].seq));
    assert_eq!(
        told.iter()
            .filter(|out| matches!(out, Out::Tell(_)))
            .count(),
        2
    );
}

#[test]
fn much_text_is_told_in_pieces() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let begin = words::command("message i1", life.owner.thread(), life.now);
    life.report(begin);
    life.settle();
    let long = "é".repeat(Delta::BYTES_MAX);
    let short = "e".repeat(20_000);
    for text in [long.as_str(), &short, &short] {
        life.report(Command::AppendText(AppendText {
            item: ItemId::from("i1"),
            part: Part::Text,
            text: text.to_owned(),
        }));
    }
    let mut told = String::new();
    for record in append(&mut life.owner, life.now) {
        if let Body::Delta(delta) = record.body {
            assert!(delta.text.len() <= Delta::BYTES_MAX);
            assert_eq!(delta.offset, told.len() as u64);
            told.push_str(&delta.text);
        }
    }
    assert_eq!(told, format!("{long}{short}{short}"));
}

#[test]
fn an_interrupt_is_answered_when_the_turn_has_ended() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    for line in ["call i1 shell \"sleep\" run", "done"] {
        let command = words::command(line, life.owner.thread(), life.now);
        life.report(command);
        life.settle();
    }
    life.replies.clear();
    let command = words::command("interrupt t1", life.owner.thread(), life.now);
    let token = life.order(command);
    life.settle();
    assert_eq!(life.replies, []);
    let command = words::command("ended i1 killed \"\"", life.owner.thread(), life.now);
    life.report(command);
    life.settle();
    assert_eq!(life.replies, [(token, Ok(Outcome::Done {}))]);
}

#[test]
fn numbers_that_may_have_been_told_are_not_used_again() {
    let mut life = idle_life();
    let head = life.owner.stored();
    let reserved = life.owner.thread().reserved();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let seen = life.owner.stored();

    // The power goes, and with it everything after the first head.
    life.journal.retain(|record| record.seq <= head);
    life.crash();
    life.settle();
    let thread = fold(&life.journal);
    let first = life.journal.iter().find(|record| record.seq > head);
    assert_eq!(first.map(|record| record.seq), Some(reserved.next()));
    assert_eq!(thread.cursor(seen), Cursor::Expired);
    assert_eq!(thread.cursor(head), Cursor::Good);
    assert_eq!(thread.cursor(thread.head()), Cursor::Good);
    assert_eq!(thread.cursor(thread.head().next()), Cursor::Expired);
    assert_eq!(thread.cursor(Seq::ZERO), Cursor::Good);
}

#[test]
fn an_owner_that_leaves_in_good_order_leaves_no_gap() {
    let mut life = idle_life();
    life.order(Command::Release);
    life.settle();
    let head = life.journal.last().map(|record| record.seq);
    life.crash();
    life.settle();
    let next = life.journal.iter().find(|record| Some(record.seq) > head);
    assert_eq!(next.map(|record| record.seq), head.map(Seq::next));
}

#[test]
fn a_deleted_thread_is_not_taken() {
    let mut life = idle_life();
    life.order(Command::Delete(Delete::default()));
    life.settle();
    life.crash();
    assert_eq!(life.owner.step(life.now), Step::Ended(Ended::Deleted));
}

#[test]
fn the_reserve_is_renewed_before_it_is_passed() {
    let mut life = idle_life();
    for number in 0..12_000 {
        life.order(crate::words::rename(Some(number.to_string())));
        life.settle();
        assert!(life.owner.stored() <= fold_reserved(&life), "at {number}");
    }
    let renewals = life.journal.iter().filter(|record| {
        matches!(&record.body, Body::Event(event) if matches!(**event, Event::Reserved(_)))
    });
    // Every half of a reserve.
    assert_eq!(renewals.count(), 2);
}

fn fold_reserved(life: &Life) -> Seq {
    life.owner.thread().reserved()
}

#[test]
fn a_snapshot_is_kept_now_and_then() {
    let mut life = idle_life();
    for number in 0..2_500 {
        life.order(crate::words::rename(Some(number.to_string())));
        life.settle();
    }
    assert_eq!(life.bases.len(), 2);
    let base = life.bases.pop().expect("a base");
    let upto = base.thread.head();
    assert_eq!(
        base.thread,
        fold(life.journal.iter().filter(|it| it.seq <= upto))
    );
}

#[test]
fn a_long_message_is_saved_so_that_its_deltas_can_go() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let command = words::command("message i1", life.owner.thread(), life.now);
    life.report(command);
    let piece = "x".repeat(64 << 10);
    for _ in 0..40 {
        let command = Command::AppendText(AppendText {
            item: "i1".into(),
            part: Part::Text,
            text: piece.clone(),
        });
        life.report(command);
        life.settle();
    }
    let saved: Vec<usize> = life
        .journal
        .iter()
        .filter_map(|record| match &record.body {
            Body::Event(event) => match &**event {
                Event::ItemSaved(it) => Some(it.texts[0].text.len()),
                _ => None,
            },
            Body::Delta(_) => None,
        })
        .collect();
    let total: usize = saved.iter().sum();
    assert!(saved.len() >= 3, "{saved:?}");
    assert!(
        total < 3 * 40 * piece.len(),
        "{total} bytes saved for {}",
        40 * piece.len()
    );
    let full = Command::AppendText(AppendText {
        item: "i1".into(),
        part: Part::Text,
        text: "x".repeat(8 << 20),
    });
    let refused = life.owner.thread().decide(full, life.now);
    assert_eq!(refused, Err(Refusal::ItemFull));
}

#[test]
fn who_subscribes_meets_the_stream_without_a_gap() {
    let mut life = idle_life();
    let seen = life.owner.stored();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
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
        Out::Subscribed(settled) => Some(*settled),
        _ => None,
    });
    let wanted = Settled {
        token,
        cursor: Cursor::Good,
        after: seen,
        head,
    };
    assert_eq!(settled, Some(wanted));
}

#[test]
fn a_fork_goes_on_from_the_copy_and_leaves_the_turn_behind() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let thread = fold(&life.journal);
    let id: ThreadId = "019a0000-0000-7000-8000-0000000000ff"
        .parse()
        .expect("an id");
    let fork = Forked {
        thread: id,
        from: words::thread_id(),
        at: thread.head(),
        principal: Some("bob".to_owned()),
        lineage: thread.lineage().to_vec(),
        turns: thread.turns(),
        settings: thread.settings().clone(),
        ephemeral: false,
    };
    life.owner = Owner::fork(thread, fork, node(9), life.now);
    life.settle();
    let forked = fold(&life.journal);
    assert_eq!(forked.id(), Some(id));
    assert_eq!(forked.status(), Status::Idle);
    assert_eq!(view(&forked).forked_from_id, Some(words::thread_id()));
    assert_eq!(words::read_by_model(&life.journal, &forked), "user \"hi\"");
    assert_eq!(life.bases.len(), 1, "a fork begins with a base");
}

#[test]
fn leaving_and_deleting_end_the_task() {
    for (command, ended) in [
        (Command::Release, Ended::Released),
        (Command::Delete(Delete::default()), Ended::Deleted),
    ] {
        let mut life = idle_life();
        life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
        life.settle();
        life.order(command);
        life.settle();
        assert_eq!(life.owner.step(life.now), Step::Ended(ended));
        assert_eq!(life.owner.running().count(), 0);
    }
}

#[test]
fn a_client_that_saw_less_than_was_saved_needs_a_snapshot() {
    let mut life = idle_life();
    life.order(words::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let before = life.owner.stored();
    let command = words::command("message i1", life.owner.thread(), life.now);
    life.report(command);
    life.settle();
    let began = life.owner.stored();
    let piece = |size| {
        Command::AppendText(AppendText {
            item: "i1".into(),
            part: Part::Text,
            text: "x".repeat(size),
        })
    };
    life.report(piece(10));
    life.settle();
    let in_between = life.owner.stored();
    assert_eq!(life.owner.thread().cursor(in_between), Cursor::Good);
    life.report(piece(300 << 10));
    life.settle();
    let saved = life.owner.stored();
    let thread = life.owner.thread();
    // It hears of the item's beginning, and then all its text at once.
    assert_eq!(thread.cursor(before), Cursor::Good);
    assert_eq!(thread.cursor(began), Cursor::Expired);
    assert_eq!(thread.cursor(in_between), Cursor::Expired);
    assert_eq!(thread.cursor(saved), Cursor::Good);
    // Once the item is whole, its last form is all anyone needs.
    let command = words::command("done", life.owner.thread(), life.now);
    life.report(command);
    life.settle();
    assert_eq!(life.owner.thread().cursor(in_between), Cursor::Good);
}

#[test]
fn short_reigns_come_to_a_base_too() {
    let mut life = idle_life();
    life.bases.clear();
    for epoch in 2..400 {
        let mut thread = Thread::new();
        let mut tail = Tail::default();
        let newest = life.bases.last().map_or(Seq::ZERO, |it| it.thread.head());
        for record in &life.journal {
            thread.apply(record);
            if record.seq > newest {
                tail.count(record);
            }
        }
        let found = thread.head();
        life.owner = Owner::open(thread, found, node(epoch), life.now).since_base(tail);
        life.order(words::rename(Some(epoch.to_string())));
        life.settle();
        life.order(Command::Release);
        life.settle();
    }
    assert_eq!(life.bases.len(), 1, "of about 1200 events");
}

#[test]
fn what_two_clients_change_is_both_kept() {
    let mut life = idle_life();
    let change = |change| {
        Command::ChangeSettings(Box::new(ChangeSettings {
            change,
            principal: Some("someone".to_owned()),
        }))
    };
    life.order(change(SettingsChange {
        model: Some(Some("m2".to_owned())),
        ..SettingsChange::default()
    }));
    life.order(change(SettingsChange {
        effort: Some(Some("high".to_owned())),
        ..SettingsChange::default()
    }));
    life.settle();
    let settings = life.owner.thread().settings();
    assert_eq!(settings.model.as_deref(), Some("m2"));
    assert_eq!(settings.effort.as_deref(), Some("high"));
}

#[test]
fn a_large_message_counts_in_full() {
    let mut life = idle_life();
    life.bases.clear();
    // Five messages of 1 MiB each are more than a base may lie behind.
    for number in 0..5 {
        let turn = format!("t{number}");
        life.order(words::start_turn(
            &turn,
            TurnKind::Work,
            Some(&"x".repeat(1 << 20)),
        ));
        life.settle();
        let command = words::command("done", life.owner.thread(), life.now);
        life.report(command);
        life.settle();
    }
    assert_eq!(life.bases.len(), 1);
}

#[test]
fn a_fork_is_as_new_as_itself() {
    use raddle_core::ports::Summary;
    let mut records = Vec::new();
    let mut at = |millis: i64, event: Event| {
        let seq = Seq(records.len() as u64 + 1);
        let at = Timestamp(millis);
        let body = event.into();
        records.push(Record { seq, at, body });
    };
    // The first turn began in the same tick as the thread.
    at(10, Event::ThreadStarted(words::thread_started()));
    at(
        10,
        Event::TurnStarted(TurnStarted {
            turn: "t1".into(),
            kind: TurnKind::Work,
            principal: None,
            root: None,
            output_schema: None,
        }),
    );
    at(
        11,
        Event::Forked(Forked {
            thread: ThreadId::mint(),
            from: ThreadId::mint(),
            at: Seq(2),
            principal: None,
            lineage: Vec::new(),
            turns: 1,
            settings: Settings::default(),
            ephemeral: false,
        }),
    );
    let mut summary = None;
    for record in &records {
        Summary::fold(&mut summary, record);
    }
    assert_eq!(summary, Summary::of(&fold(&records)));
    assert_eq!(summary.map(|it| it.recency_at), Some(Timestamp(11)));
}
