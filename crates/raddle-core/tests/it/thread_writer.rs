//! The owner's round: what goes out, and when.

/// Snapshots of a thread, and how far they lie apart.
mod bases;
/// What waits for the next round, and how much a round takes.
mod inbox;
/// The numbers of records: which are used, and which a client may come back with.
mod numbers;
/// Text that grows.
mod texts;
/// Work that is started and stopped, and who waits for its end.
mod work;

use raddle_core::ports::AppendError;
use raddle_core::*;

use crate::fixtures;
use crate::simulated::{SimulatedThread, fold, node};

fn append(owner: &mut ThreadWriter, now: Timestamp) -> Vec<Record> {
    match owner.step(now) {
        Step::Append { records, .. } => records,
        other => panic!("an append was expected, not {other:?}"),
    }
}

fn keyed(key: IdempotencyKey, asked: &str) -> Box<IdempotentRequest> {
    Box::new(IdempotentRequest {
        key,
        asked: asked.to_owned(),
        render: None,
    })
}

fn idle_life() -> SimulatedThread {
    let mut life = SimulatedThread::new();
    life.told.clear();
    life
}

#[test]
fn nothing_goes_out_before_it_is_stored() {
    let mut life = idle_life();
    let token = life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let records = append(&mut life.owner, life.now);
    assert_eq!(records.len(), 3, "turn, input, call of the model");
    let outs = life.owner.appended(Ok(records[2].seq));
    let kinds: Vec<&str> = outs
        .iter()
        .map(|out| match out {
            WriterAction::Reply(it, Ok(CommandOutcome::Started { .. })) if *it == token => "reply",
            WriterAction::Tell(_) => "tell",
            WriterAction::Start(Effect::CallModel { .. }) => "start",
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["reply", "tell", "tell", "tell", "start"]);
}

#[test]
fn a_conflict_ends_the_task_and_says_nothing() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    let late = life.order(crate::fixtures::rename(Some("x".to_owned())));
    let outs = life.owner.appended(Err(AppendError::Conflict));
    let refused: Vec<Token> = outs
        .iter()
        .map(|out| match out {
            WriterAction::Reply(token, Err(Refusal::OwnedElsewhere)) => *token,
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(refused, [Token(1), late]);
    assert_eq!(
        life.owner.step(life.now),
        Step::Ended(WriterEnd::OwnedElsewhere)
    );
}

#[test]
fn an_unavailable_journal_is_tried_again_with_the_same_records() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let first = append(&mut life.owner, life.now);
    let away = AppendError::Unavailable("away".to_owned());
    assert_eq!(life.owner.appended(Err(away)), []);
    life.order(crate::fixtures::rename(Some("x".to_owned())));
    assert_eq!(append(&mut life.owner, life.now), first);
}

#[test]
fn a_full_journal_is_said_to_everyone() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    let outs = life
        .owner
        .appended(Err(AppendError::Full("0 bytes left".to_owned())));
    assert!(matches!(
        &outs[..],
        [WriterAction::Reply(_, Err(Refusal::NotStored(_)))]
    ));
    assert!(matches!(
        life.owner.step(life.now),
        Step::Ended(WriterEnd::NotStored(_))
    ));
}

#[test]
fn a_turn_that_finds_no_room_ends_with_the_next_append() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    life.order(fixtures::command("rename a", life.owner.thread(), life.now));
    append(&mut life.owner, life.now);
    let full = || Err(AppendError::Full("0 bytes left".to_owned()));
    life.owner.appended(full());
    assert!(matches!(
        life.owner.step(life.now),
        Step::Ended(WriterEnd::NotStored(_))
    ));
    let failure = Failure::new(FailureKind::StorageFull, "no room");
    let stored = fold(&life.journal);
    let after = stored.head();
    let tail = Tail::default();
    life.owner
        .fail_turn(stored, node(2), failure.clone(), life.now, tail);
    let records = append(&mut life.owner, life.now);
    assert!(ports::ends_for_lack_of_space(&records));
    // Nothing else can be done for the turn, so the same is tried again.
    assert_eq!(life.owner.appended(full()), []);
    assert_eq!(life.owner.fails(), Some(&failure));
    assert_eq!(append(&mut life.owner, life.now), records);
    assert_eq!(life.owner.stored(), after);
    life.told.clear();
    life.settle();
    assert_eq!(life.owner.fails(), None);
    let ends = life.told.iter().flat_map(|it| &it.notifications);
    let ends = ends.filter(|it| it.method() == "turn/completed");
    assert_eq!(ends.count(), 1);
    let thread = fold(&life.journal);
    assert!(thread.turn().is_none());
    let last = thread.last_turn().map(|turn| &turn.end);
    assert_eq!(last, Some(&TurnEnd::Failed(failure)));
}

#[test]
fn the_head_settles_a_lost_acknowledgement() {
    for (case, stored, outs) in [("it was stored", true, 5), ("it was not", false, 0)] {
        let mut life = idle_life();
        life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
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
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut life.owner, life.now);
    life.owner
        .appended(Err(AppendError::Unknown("no answer".to_owned())));
    life.owner.head_is(Seq(1_000_000));
    assert_eq!(
        life.owner.step(life.now),
        Step::Ended(WriterEnd::OwnedElsewhere)
    );
}

#[test]
fn a_request_that_comes_twice_is_carried_out_once() {
    let mut life = idle_life();
    let key = IdempotencyKey {
        principal: "ann".to_owned(),
        method: "turn/start".to_owned(),
        id: "k1".to_owned(),
    };
    let send = |life: &mut SimulatedThread, token: u64, turn: &str, asked: &str| {
        let command = fixtures::start_turn(turn, TurnKind::Work, Some("hi"));
        let envelope = Envelope::Command {
            command,
            token: Some(Token(token)),
            key: Some(keyed(key.clone(), asked)),
        };
        life.owner.offer(envelope).expect("room");
        life.settle();
        life.replies.pop().expect("a reply").1
    };
    let started = Ok(CommandOutcome::Started { turn: "t1".into() });
    assert_eq!(send(&mut life, 1, "t1", "same"), started);
    let records = life.journal.len();
    assert_eq!(send(&mut life, 2, "t2", "same"), started);
    assert_eq!(life.journal.len(), records, "nothing new was stored");
    assert_eq!(send(&mut life, 3, "t3", "other"), Err(Refusal::KeyReused));

    // Also by the next owner.
    life.crash();
    life.settle();
    assert_eq!(send(&mut life, 4, "t4", "same"), started);

    // For a day it is remembered, and then forgotten: the input joins the turn that runs.
    life.now = life.now.plus_ms(24 * 60 * 60 * 1000);
    assert_eq!(send(&mut life, 5, "t5", "same"), started);
    life.now = life.now.plus_ms(1);
    assert_eq!(
        send(&mut life, 6, "t6", "same"),
        Ok(CommandOutcome::Joined { turn: "t1".into() })
    );
}

/// What was answered is stored with what it tells, and given again however the thread looks by then.
#[test]
fn an_answer_is_kept_with_its_key() {
    let mut life = idle_life();
    let send = |life: &mut SimulatedThread, id: &str, name: &str, bytes: usize| {
        let key = IdempotencyKey {
            principal: "ann".to_owned(),
            method: "thread/name/set".to_owned(),
            id: id.to_owned(),
        };
        let shows = move |_: &CommandOutcome, thread: &Thread| {
            let name = thread.name().unwrap_or_default();
            Some(format!("{name}{}", "x".repeat(bytes)))
        };
        let envelope = Envelope::Command {
            command: fixtures::rename(Some(name.to_owned())),
            token: Some(Token(1)),
            key: Some(Box::new(IdempotentRequest {
                render: Some(RenderResponse::new(shows)),
                ..*keyed(key, "asked")
            })),
        };
        life.owner.offer(envelope).expect("room");
        life.settle();
        match life.replies.pop().expect("a reply").1 {
            Ok(CommandOutcome::Kept { answer }) => answer.chars().take(10).collect::<String>(),
            other => panic!("an answer that is kept was expected, not {other:?}"),
        }
    };
    assert_eq!(send(&mut life, "k1", "first", 0), "first");
    assert_eq!(send(&mut life, "k2", "second", 0), "second");
    life.crash();
    life.settle();
    assert_eq!(send(&mut life, "k1", "third", 0), "first");
    assert_eq!(life.owner.thread().name(), Some("second"));

    // Long answers make room for each other, but the newest is always there.
    assert_eq!(send(&mut life, "k3", "third", 5 << 20), "thirdxxxxx");
    assert_eq!(send(&mut life, "k3", "fourth", 0), "thirdxxxxx");
    assert_eq!(send(&mut life, "k1", "fourth", 0), "fourth");
}

/// What a thread is made for is stored with its first records.
#[test]
fn a_thread_knows_what_it_is_made_for() {
    let key = IdempotencyKey {
        principal: "ann".to_owned(),
        method: "thread/start".to_owned(),
        id: "k1".to_owned(),
    };
    let mut life = idle_life();
    let owner = ThreadWriter::start(fixtures::thread_started(), node(1), life.now);
    let mut owner = owner.with_idempotency(*keyed(key.clone(), "asked"), life.now);
    let thread = fold(&append(&mut owner, life.now));
    for (asked, expected) in [
        ("asked", Some(Ok(CommandOutcome::Done {}))),
        ("other", Some(Err(Refusal::KeyReused))),
    ] {
        assert_eq!(thread.recall(&key, asked, life.now), expected, "{asked}");
    }
    life.now = life.now.plus_ms(24 * 60 * 60 * 1000 + 1);
    assert_eq!(thread.recall(&key, "asked", life.now), None);
}

/// The oldest makes room, so that what is remembered stays small.
#[test]
fn so_many_requests_are_remembered_by_their_keys() {
    let mut life = idle_life();
    let send = |life: &mut SimulatedThread, number: u64, asked: &str| {
        let key = IdempotencyKey {
            principal: "ann".to_owned(),
            method: "thread/name/set".to_owned(),
            id: number.to_string(),
        };
        let envelope = Envelope::Command {
            command: fixtures::rename(Some(number.to_string())),
            token: Some(Token(number)),
            key: Some(keyed(key, asked)),
        };
        life.owner.offer(envelope).expect("room");
        life.settle();
        life.replies.pop().expect("a reply").1
    };
    for number in 0..1000 {
        assert_eq!(
            send(&mut life, number, "first"),
            Ok(CommandOutcome::Done {})
        );
    }
    assert_eq!(send(&mut life, 0, "again"), Err(Refusal::KeyReused));
    assert_eq!(send(&mut life, 1000, "first"), Ok(CommandOutcome::Done {}));
    assert_eq!(send(&mut life, 0, "again"), Ok(CommandOutcome::Done {}));
    assert_eq!(send(&mut life, 2, "again"), Err(Refusal::KeyReused));
}

#[test]
fn a_deleted_thread_is_not_taken() {
    let mut life = idle_life();
    life.order(Command::Delete(Delete::default()));
    life.settle();
    life.crash();
    assert_eq!(life.owner.step(life.now), Step::Ended(WriterEnd::Deleted));
}

#[test]
fn a_fork_goes_on_from_the_copy_and_leaves_the_turn_behind() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    let thread = fold(&life.journal);
    let id: ThreadId = "019a0000-0000-7000-8000-0000000000ff"
        .parse()
        .expect("an id");
    let fork = Forked {
        thread: id,
        from: fixtures::thread_id(),
        at: thread.head(),
        principal: Some("bob".to_owned()),
        lineage: thread.lineage().to_vec(),
        turns: thread.turns(),
        settings: thread.settings().clone(),
        ephemeral: false,
    };
    life.owner = ThreadWriter::fork(thread, fork, node(9), life.now);
    life.settle();
    let forked = fold(&life.journal);
    assert_eq!(forked.id(), Some(id));
    assert_eq!(forked.status(), Status::Idle);
    assert_eq!(view(&forked).forked_from_id, Some(fixtures::thread_id()));
    assert_eq!(
        fixtures::read_by_model(&life.journal, &forked),
        "user \"hi\""
    );
    assert_eq!(life.bases.len(), 1, "a fork begins with a base");
}

/// A copy may end anywhere, also between the end of a review and that of its turn.
#[test]
fn a_review_that_has_ended_does_not_end_again() {
    let mut life = idle_life();
    life.say(r#"review t1 "look" · said i1 "fine" · done"#);
    let leaves = |record: &Record| match &record.body {
        RecordBody::Event(event) => match &**event {
            Event::ItemCompleted(it) => matches!(it.item.body, ItemBody::ReviewLeft(_)),
            _ => false,
        },
        RecordBody::Delta(_) => false,
    };
    let left = life.journal.iter().position(leaves).expect("its end");
    life.journal.truncate(left + 1);
    life.crash();
    life.settle();
    assert_eq!(life.owner.thread().status(), Status::Idle);
    assert_eq!(life.journal.iter().filter(|it| leaves(it)).count(), 1);
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
    at(10, Event::ThreadStarted(fixtures::thread_started()));
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
