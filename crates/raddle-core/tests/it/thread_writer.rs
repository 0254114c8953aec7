//! State machine of the thread writer: its actions and their order.

/// Snapshots of a thread, and their distance.
mod bases;
/// Messages that wait for the next round, and the size of a round.
mod inbox;
/// Numbers of records: their use, and the cursors of clients.
mod numbers;
/// Text of open items, in deltas.
mod texts;
/// Work that is started and stopped, and the callers that wait for its end.
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

fn idempotent_request(key: IdempotencyKey, request_hash: &str) -> Box<IdempotentRequest> {
    Box::new(IdempotentRequest {
        key,
        request_hash: request_hash.to_owned(),
        render: None,
    })
}

fn idle_thread() -> SimulatedThread {
    let mut sim = SimulatedThread::new();
    sim.announcements.clear();
    sim
}

#[test]
fn nothing_goes_out_before_it_is_stored() {
    let mut sim = idle_thread();
    let token = sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let records = append(&mut sim.owner, sim.now);
    assert_eq!(records.len(), 3, "turn, input, call of the model");
    let actions = sim.owner.appended(Ok(records[2].seq));
    let kinds: Vec<&str> = actions
        .iter()
        .map(|action| match action {
            WriterAction::Reply(it, Ok(CommandOutcome::Started { .. })) if *it == token => "reply",
            WriterAction::Announce(_) => "announce",
            WriterAction::Start(Effect::CallModel { .. }) => "start",
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        ["reply", "announce", "announce", "announce", "start"]
    );
}

#[test]
fn a_conflict_ends_the_task_without_announcements() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut sim.owner, sim.now);
    let late = sim.send_command(crate::fixtures::rename(Some("x".to_owned())));
    let actions = sim.owner.appended(Err(AppendError::Conflict));
    let tokens: Vec<Token> = actions
        .iter()
        .map(|action| match action {
            WriterAction::Reply(token, Err(Refusal::OwnedElsewhere)) => *token,
            other => panic!("not expected: {other:?}"),
        })
        .collect();
    assert_eq!(tokens, [Token(1), late]);
    assert_eq!(
        sim.owner.step(sim.now),
        Step::Ended(WriterEnd::OwnedElsewhere)
    );
}

#[test]
fn an_unavailable_journal_is_tried_again_with_the_same_records() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    let first = append(&mut sim.owner, sim.now);
    let away = AppendError::Unavailable("away".to_owned());
    assert_eq!(sim.owner.appended(Err(away)), []);
    sim.send_command(crate::fixtures::rename(Some("x".to_owned())));
    assert_eq!(append(&mut sim.owner, sim.now), first);
}

#[test]
fn a_full_journal_refuses_every_caller() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut sim.owner, sim.now);
    let actions = sim
        .owner
        .appended(Err(AppendError::Full("0 bytes left".to_owned())));
    assert!(matches!(
        &actions[..],
        [WriterAction::Reply(_, Err(Refusal::NotStored(_)))]
    ));
    assert!(matches!(
        sim.owner.step(sim.now),
        Step::Ended(WriterEnd::NotStored(_))
    ));
}

#[test]
fn a_turn_without_space_ends_with_the_next_append() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    sim.send_command(fixtures::command("rename a", sim.owner.thread(), sim.now));
    append(&mut sim.owner, sim.now);
    let full = || Err(AppendError::Full("0 bytes left".to_owned()));
    sim.owner.appended(full());
    assert!(matches!(
        sim.owner.step(sim.now),
        Step::Ended(WriterEnd::NotStored(_))
    ));
    let failure = Failure::new(FailureKind::StorageFull, "no room");
    let stored = fold(&sim.journal);
    let after = stored.head();
    let tail = Tail::default();
    sim.owner
        .fail_turn(stored, node(2), failure.clone(), sim.now, tail);
    let records = append(&mut sim.owner, sim.now);
    assert!(ports::ends_for_lack_of_space(&records));
    // The only thing left for the turn is its end, so the same append is retried.
    assert_eq!(sim.owner.appended(full()), []);
    assert_eq!(sim.owner.fails(), Some(&failure));
    assert_eq!(append(&mut sim.owner, sim.now), records);
    assert_eq!(sim.owner.stored(), after);
    sim.announcements.clear();
    sim.settle();
    assert_eq!(sim.owner.fails(), None);
    let ends = sim.announcements.iter().flat_map(|it| &it.notifications);
    let ends = ends.filter(|it| it.method() == "turn/completed");
    assert_eq!(ends.count(), 1);
    let thread = fold(&sim.journal);
    assert!(thread.turn().is_none());
    let last = thread.last_turn().map(|turn| &turn.end);
    assert_eq!(last, Some(&TurnEnd::Failed(failure)));
}

#[test]
fn the_head_settles_a_lost_acknowledgement() {
    for (case, stored, action_count) in [("it was stored", true, 5), ("it was not", false, 0)] {
        let mut sim = idle_thread();
        sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        let before = sim.owner.stored();
        let records = append(&mut sim.owner, sim.now);
        let lost = AppendError::Unknown("no answer".to_owned());
        assert_eq!(sim.owner.appended(Err(lost)), [], "{case}");
        assert_eq!(sim.owner.step(sim.now), Step::ReadHead, "{case}");
        let head = if stored { records[2].seq } else { before };
        assert_eq!(sim.owner.head_is(head).len(), action_count, "{case}");
        if !stored {
            assert_eq!(append(&mut sim.owner, sim.now), records, "{case}");
        }
    }
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    append(&mut sim.owner, sim.now);
    sim.owner
        .appended(Err(AppendError::Unknown("no answer".to_owned())));
    sim.owner.head_is(Seq(1_000_000));
    assert_eq!(
        sim.owner.step(sim.now),
        Step::Ended(WriterEnd::OwnedElsewhere)
    );
}

/// A caller is told that nothing was stored only if that is certain.
#[test]
fn a_caller_in_doubt_does_not_learn_that_nothing_was_stored() {
    let unknown = || Err(AppendError::Unknown("no answer".to_owned()));
    let away = || Err(AppendError::Unavailable("away".to_owned()));
    let conflict = || Err(AppendError::Conflict);
    let elsewhere = Refusal::OwnedElsewhere;
    let not_stored = Refusal::NotStored("too long".to_owned());
    let in_doubt = Refusal::OutcomeUnknown;
    for (results, refusal) in [
        (vec![conflict()], &elsewhere),
        (vec![away(), conflict()], &elsewhere),
        (vec![away()], &not_stored),
        (vec![unknown()], &in_doubt),
        // The first attempt may have been stored after the head was read.
        (vec![unknown(), conflict()], &in_doubt),
        (vec![unknown(), away()], &in_doubt),
    ] {
        let mut sim = idle_thread();
        sim.send_command(fixtures::rename(Some("n".to_owned())));
        let before = sim.owner.stored();
        let mut actions = Vec::new();
        let case = format!("{results:?}");
        for result in results {
            if sim.owner.step(sim.now) == Step::ReadHead {
                sim.owner.head_is(before);
            }
            append(&mut sim.owner, sim.now);
            actions = sim.owner.appended(result);
        }
        if !sim.owner.is_over() {
            actions = sim.owner.give_up("too long".to_owned());
        }
        let refused = |action: &WriterAction| matches!(action, WriterAction::Reply(_, Err(it)) if it == refusal);
        assert!(
            actions.len() == 1 && refused(&actions[0]),
            "{case}: {actions:?}"
        );
    }
}

#[test]
fn a_repeated_request_is_executed_once() {
    let mut sim = idle_thread();
    let key = IdempotencyKey {
        principal: "ann".to_owned(),
        method: "turn/start".to_owned(),
        id: "k1".to_owned(),
    };
    let send = |sim: &mut SimulatedThread, token: u64, turn: &str, request_hash: &str| {
        let command = fixtures::start_turn(turn, TurnKind::Work, Some("hi"));
        let envelope = Envelope::Command {
            command,
            token: Some(Token(token)),
            key: Some(idempotent_request(key.clone(), request_hash)),
        };
        sim.owner.offer(envelope).expect("capacity");
        sim.settle();
        sim.replies.pop().expect("a reply").1
    };
    let started = Ok(CommandOutcome::Started { turn: "t1".into() });
    assert_eq!(send(&mut sim, 1, "t1", "same"), started);
    let records = sim.journal.len();
    assert_eq!(send(&mut sim, 2, "t2", "same"), started);
    assert_eq!(sim.journal.len(), records, "nothing new was stored");
    assert_eq!(send(&mut sim, 3, "t3", "other"), Err(Refusal::KeyReused));

    // The next owner returns the same.
    sim.crash();
    sim.settle();
    assert_eq!(send(&mut sim, 4, "t4", "same"), started);

    // The key is stored for a day, and then dropped: the input joins the running turn.
    sim.now = sim.now.plus_ms(24 * 60 * 60 * 1000);
    assert_eq!(send(&mut sim, 5, "t5", "same"), started);
    sim.now = sim.now.plus_ms(1);
    assert_eq!(
        send(&mut sim, 6, "t6", "same"),
        Ok(CommandOutcome::Joined { turn: "t1".into() })
    );
}

/// The response is stored with the records it describes, and returned again whatever the thread's
/// state is by then.
#[test]
fn a_response_is_stored_with_its_key() {
    let mut sim = idle_thread();
    let send = |sim: &mut SimulatedThread, id: &str, name: &str, bytes: usize| {
        let key = IdempotencyKey {
            principal: "ann".to_owned(),
            method: "thread/name/set".to_owned(),
            id: id.to_owned(),
        };
        let render = move |_: &CommandOutcome, thread: &Thread| {
            let name = thread.name().unwrap_or_default();
            Some(format!("{name}{}", "x".repeat(bytes)))
        };
        let envelope = Envelope::Command {
            command: fixtures::rename(Some(name.to_owned())),
            token: Some(Token(1)),
            key: Some(Box::new(IdempotentRequest {
                render: Some(RenderResponse::new(render)),
                ..*idempotent_request(key, "asked")
            })),
        };
        sim.owner.offer(envelope).expect("capacity");
        sim.settle();
        match sim.replies.pop().expect("a reply").1 {
            Ok(CommandOutcome::Kept { answer }) => answer.chars().take(10).collect::<String>(),
            other => panic!("an answer that is kept was expected, not {other:?}"),
        }
    };
    assert_eq!(send(&mut sim, "k1", "first", 0), "first");
    assert_eq!(send(&mut sim, "k2", "second", 0), "second");
    sim.crash();
    sim.settle();
    assert_eq!(send(&mut sim, "k1", "third", 0), "first");
    assert_eq!(sim.owner.thread().name(), Some("second"));

    // Long responses displace each other, but the newest is always stored.
    assert_eq!(send(&mut sim, "k3", "third", 5 << 20), "thirdxxxxx");
    assert_eq!(send(&mut sim, "k3", "fourth", 0), "thirdxxxxx");
    assert_eq!(send(&mut sim, "k1", "fourth", 0), "fourth");
}

/// The key of the request that creates a thread is stored with the thread's first records.
#[test]
fn a_new_thread_stores_the_key_of_its_request() {
    let key = IdempotencyKey {
        principal: "ann".to_owned(),
        method: "thread/start".to_owned(),
        id: "k1".to_owned(),
    };
    let mut sim = idle_thread();
    let owner = ThreadWriter::start(fixtures::thread_started(), node(1), sim.now);
    let mut owner = owner.with_idempotency(*idempotent_request(key.clone(), "asked"), sim.now);
    let thread = fold(&append(&mut owner, sim.now));
    for (request_hash, expected) in [
        ("asked", Some(Ok(CommandOutcome::Done {}))),
        ("other", Some(Err(Refusal::KeyReused))),
    ] {
        assert_eq!(
            thread.recall(&key, request_hash, sim.now),
            expected,
            "{request_hash}"
        );
    }
    sim.now = sim.now.plus_ms(24 * 60 * 60 * 1000 + 1);
    assert_eq!(thread.recall(&key, "asked", sim.now), None);
}

/// The oldest key is dropped, so that the stored keys stay few.
#[test]
fn a_maximum_of_keys_is_stored() {
    let mut sim = idle_thread();
    let send = |sim: &mut SimulatedThread, number: u64, request_hash: &str| {
        let key = IdempotencyKey {
            principal: "ann".to_owned(),
            method: "thread/name/set".to_owned(),
            id: number.to_string(),
        };
        let envelope = Envelope::Command {
            command: fixtures::rename(Some(number.to_string())),
            token: Some(Token(number)),
            key: Some(idempotent_request(key, request_hash)),
        };
        sim.owner.offer(envelope).expect("capacity");
        sim.settle();
        sim.replies.pop().expect("a reply").1
    };
    for number in 0..1000 {
        assert_eq!(send(&mut sim, number, "first"), Ok(CommandOutcome::Done {}));
    }
    assert_eq!(send(&mut sim, 0, "again"), Err(Refusal::KeyReused));
    assert_eq!(send(&mut sim, 1000, "first"), Ok(CommandOutcome::Done {}));
    assert_eq!(send(&mut sim, 0, "again"), Ok(CommandOutcome::Done {}));
    assert_eq!(send(&mut sim, 2, "again"), Err(Refusal::KeyReused));
}

#[test]
fn a_deleted_thread_gets_no_owner() {
    let mut sim = idle_thread();
    sim.send_command(Command::Delete(Delete::default()));
    sim.settle();
    sim.crash();
    assert_eq!(sim.owner.step(sim.now), Step::Ended(WriterEnd::Deleted));
}

#[test]
fn a_fork_continues_from_the_copy_without_the_open_turn() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    let thread = fold(&sim.journal);
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
    sim.owner = ThreadWriter::fork(thread, fork, node(9), sim.now);
    sim.settle();
    let forked = fold(&sim.journal);
    assert_eq!(forked.id(), Some(id));
    assert_eq!(forked.status(), Status::Idle);
    assert_eq!(view(&forked).forked_from_id, Some(fixtures::thread_id()));
    assert_eq!(
        fixtures::model_context(&sim.journal, &forked),
        "user \"hi\""
    );
    assert_eq!(sim.bases.len(), 1, "a fork begins with a base");
}

/// A copy may end anywhere, also between the end of a review and that of its turn.
#[test]
fn a_review_that_has_ended_does_not_end_again() {
    let mut sim = idle_thread();
    sim.run_line(r#"review t1 "look" · said i1 "fine" · done"#);
    let ends_review = |record: &Record| match &record.body {
        RecordBody::Event(event) => match &**event {
            Event::ItemCompleted(it) => matches!(it.item.body, ItemBody::ReviewLeft(_)),
            _ => false,
        },
        RecordBody::Delta(_) => false,
    };
    let review_end = sim.journal.iter().position(ends_review).expect("its end");
    sim.journal.truncate(review_end + 1);
    sim.crash();
    sim.settle();
    assert_eq!(sim.owner.thread().status(), Status::Idle);
    assert_eq!(sim.journal.iter().filter(|it| ends_review(it)).count(), 1);
}

#[test]
fn changes_of_two_clients_are_both_kept() {
    let mut sim = idle_thread();
    let change = |change| {
        Command::ChangeSettings(Box::new(ChangeSettings {
            change,
            principal: Some("someone".to_owned()),
        }))
    };
    sim.send_command(change(SettingsChange {
        model: Some(Some("m2".to_owned())),
        ..SettingsChange::default()
    }));
    sim.send_command(change(SettingsChange {
        effort: Some(Some("high".to_owned())),
        ..SettingsChange::default()
    }));
    sim.settle();
    let settings = sim.owner.thread().settings();
    assert_eq!(settings.model.as_deref(), Some("m2"));
    assert_eq!(settings.effort.as_deref(), Some("high"));
}

#[test]
fn a_fork_has_its_own_recency() {
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
            reviewed: Vec::new(),
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
