//! Work: started once it is stored, stopped when it is no longer needed, and waited for.

use raddle_core::*;

use super::idle_thread;
use crate::fixtures;
use crate::simulated::SimulatedThread;

#[test]
fn an_interrupt_is_answered_when_the_turn_has_ended() {
    let mut sim = idle_thread();
    sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    sim.settle();
    sim.run_line(r#"call i1 shell "sleep" run · done"#);
    sim.replies.clear();
    let command = fixtures::command("interrupt t1", sim.owner.thread(), sim.now);
    let token = sim.send_command(command);
    sim.settle();
    assert_eq!(sim.replies, []);
    sim.run_line("ended i1 killed \"\"");
    assert_eq!(sim.replies, [(token, Ok(CommandOutcome::Done {}))]);
}

/// Only the client that interrupts a turn waits for its end.
#[test]
fn while_a_turn_stops_other_commands_are_answered_at_once() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi" · call i1 shell "sleep" run · done · interrupt t1"#);
    let token = sim.send_command(fixtures::rename(Some("n".to_owned())));
    sim.settle();
    assert_eq!(sim.replies, [(token, Ok(CommandOutcome::Done {}))]);
}

/// A call that broke off is retried; the next call counts attempts from one.
#[test]
fn a_model_call_has_its_purpose_and_attempt() {
    let mut sim = idle_thread();
    for (line, purpose, attempt) in [
        ("rename \"n\"", None, 0),
        ("start t1 \"hi\"", Some(Purpose::Answer), 1),
        ("broke 0s", Some(Purpose::Answer), 2),
        ("steer t1 \"more\"", Some(Purpose::Answer), 2),
        ("done", Some(Purpose::Answer), 1),
        ("done", None, 0),
        ("compact t2", Some(Purpose::Compact), 1),
    ] {
        sim.run_line(line);
        let thread = sim.owner.thread();
        let actual = (thread.purpose(), thread.attempt());
        assert_eq!(actual, (purpose, attempt), "{line}");
    }
}

/// The calls of a turn are not retried for ever, however many there are.
#[test]
fn a_turn_has_a_maximum_of_retries() {
    let mut sim = idle_thread();
    sim.run_line("start t1 \"hi\"");
    for retry in 0..100 {
        assert!(sim.owner.thread().turn().is_some(), "retry {retry}");
        sim.run_line("broke 0s · steer t1 \"more\" · done");
    }
    sim.run_line("broke 0s");
    assert!(sim.owner.thread().turn().is_none());
    let Some(TurnEnd::Failed(error)) = sim.owner.thread().last_turn().map(|it| &it.end) else {
        panic!("it did not fail");
    };
    assert_eq!(error.kind, FailureKind::TooManyAttempts);
    let expected = "gave up after 100 retries in this turn: it broke";
    assert_eq!(error.message, expected);
}

#[test]
fn running_work_is_listed() {
    let mut sim = idle_thread();
    for (line, running) in [
        ("start t1 \"hi\"", "CallModel 1"),
        ("call i1 shell \"a\" run", "CallModel 1"),
        ("done", "RunTool i1"),
        ("interrupt t1", "RunTool i1 · StopTool i1"),
        ("ended i1 killed \"\"", ""),
    ] {
        sim.run_line(line);
        let actual: Vec<String> = sim.owner.running().map(fixtures::effect).collect();
        assert_eq!(actual.join(" · "), running, "{line}");
    }
}

/// Work that reported its own end is not stopped, nor is the stopping of work.
#[test]
fn unneeded_work_is_stopped() {
    for (line, stopped) in [
        (r#"start t1 "hi" · done"#, ""),
        (r#"start t1 "hi" · failed "no""#, ""),
        (r#"start t1 "hi" · interrupt t1"#, "CallModel 1"),
        (r#"start t1 "hi" · delete"#, "CallModel 1"),
        (r#"goal to "g" · goes t1"#, ""),
        (r#"goal to "g" · archive"#, "BeginTurn"),
        (
            r#"start t1 "hi" · call i1 shell "a" run · done · ended i1 ok """#,
            "",
        ),
        (
            r#"start t1 "hi" · call i1 shell "a" run · done · interrupt t1"#,
            "",
        ),
        (
            r#"start t1 "hi" · call i1 shell "a" run · done · interrupt t1 · ended i1 killed """#,
            "",
        ),
        (
            r#"start t1 "hi" · call i1 shell "a" run · done · interrupt t1 · release"#,
            "RunTool i1",
        ),
        (
            r#"start t1 "hi" · call i1 shell "a" run · done · delete"#,
            "RunTool i1",
        ),
    ] {
        let mut sim = idle_thread();
        sim.run_line(line);
        let stops: Vec<String> = sim.stops.iter().map(fixtures::effect).collect();
        assert_eq!(stops.join(" · "), stopped, "{line}");
    }
}

/// A tool that ignores the stop is abandoned after a timeout.
#[test]
fn a_tool_that_ignores_the_stop_is_abandoned() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi" · call i1 shell "sleep" run · done · interrupt t1"#);
    let wake = sim.now.plus_ms(10_000);
    assert_eq!(sim.owner.step(sim.now), Step::Wait(Some(wake)));
    sim.now = wake;
    sim.settle();
    let stops: Vec<String> = sim.stops.iter().map(fixtures::effect).collect();
    assert_eq!(stops, ["RunTool i1"]);
}

/// A client gets the request, and its answer is delivered to the running tool that waits for it.
#[test]
fn a_running_tool_receives_the_answer_to_its_request() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi" · call i1 shell "a" ask · done · answer 0 ann accept"#);
    assert_eq!(sim.asks, [RequestNumber(0)]);
    assert_eq!(sim.deliveries, [], "an approval is no answer to a tool");
    sim.run_line("asks i1 · answer 1 ann decline");
    assert_eq!(sim.asks, [RequestNumber(0), RequestNumber(1)]);
    let declined = Resolution::Answered {
        by: "ann".to_owned(),
        answer: Box::new(RequestAnswer::Decline {}),
    };
    let delivery = ("i1".into(), RequestNumber(1), declined);
    assert_eq!(sim.deliveries, [delivery]);
}

/// Of requests that open and settle in one round, only those that stay open are sent.
#[test]
fn a_request_settled_in_its_round_is_not_sent() {
    let mut sim = idle_thread();
    sim.run_line("start t1 \"hi\"");
    for line in [
        "call i1 shell \"a\" ask",
        "call i2 shell \"b\" ask",
        "answer 0 ann accept",
    ] {
        let command = fixtures::command(line, sim.owner.thread(), sim.now);
        sim.report(command);
    }
    sim.settle();
    assert_eq!(sim.asks, [RequestNumber(1)]);
}

/// A caller that learns that nothing was stored can retry elsewhere.
#[test]
fn an_owner_that_gives_up_refuses_every_caller() {
    let mut sim = idle_thread();
    sim.run_line("start t1 \"hi\"");
    let under_way = sim.send_command(fixtures::rename(Some("n".to_owned())));
    assert!(matches!(sim.owner.step(sim.now), Step::Append { .. }));
    let waiting = sim.send_command(fixtures::rename(Some("m".to_owned())));
    let actions = sim.owner.give_up("away for too long".to_owned());
    let refusal = || Err(Refusal::NotStored("away for too long".to_owned()));
    let call = Effect::CallModel {
        turn: "t1".into(),
        call: 1,
    };
    assert_eq!(
        actions,
        [
            WriterAction::Reply(under_way, refusal()),
            WriterAction::Reply(waiting, refusal()),
            WriterAction::Stop(call),
        ]
    );
    let ended = WriterEnd::NotStored("away for too long".to_owned());
    assert_eq!(sim.owner.step(sim.now), Step::Ended(ended));
}

#[test]
fn release_and_delete_end_the_task() {
    for (command, ended) in [
        (Command::Release, WriterEnd::Released),
        (Command::Delete(Delete::default()), WriterEnd::Deleted),
    ] {
        let mut sim = idle_thread();
        sim.send_command(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        sim.settle();
        sim.send_command(command);
        sim.settle();
        assert_eq!(sim.owner.step(sim.now), Step::Ended(ended));
        assert_eq!(sim.owner.running().count(), 0);
    }
}

/// Subscribers receive a request in the same order, whether the model call ends in that round or a
/// later one.
#[test]
fn a_request_is_sent_before_later_announcements() {
    let mut sim = idle_thread();
    sim.run_line(r#"start t1 "hi""#);
    for step in [r#"call i1 shell "rm" ask"#, "done 7"] {
        let command = fixtures::command(step, sim.owner.thread(), sim.now);
        sim.report(command);
    }
    let Step::Append { records, .. } = sim.owner.step(sim.now) else {
        panic!("nothing is stored");
    };
    let head = records.last().map_or(Seq::ZERO, |record| record.seq);
    let actions = sim.owner.appended(Ok(head));
    let order = actions.iter().filter_map(|action| match action {
        WriterAction::Ask(_) => Some("asked"),
        WriterAction::Announce(announcement) => match &announcement.record.body {
            RecordBody::Event(event) => match &**event {
                Event::ItemStarted(_) => Some("item"),
                Event::ModelEnded(_) => Some("usage"),
                _ => None,
            },
            RecordBody::Delta(_) => None,
        },
        _ => None,
    });
    let order: Vec<&str> = order.collect();
    assert_eq!(order, ["item", "asked", "usage"]);
}

/// A call that broke off after it had summarised the history is not retried. Its turn waits only
/// for the user's command, and never for a time that has passed.
#[test]
fn a_turn_without_a_call_to_make_has_no_timer() {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"compact t1 · compacted i1 "so far" · broke 5s · shell t2 u1 "ls""#);
    sim.now = sim.now.plus_ms(5_000);
    sim.settle();
    assert_eq!(sim.owner.thread().wake_at(), None);
    sim.run_line(r#"ended u1 ok "files""#);
    assert!(sim.owner.thread().turn().is_none());
}

/// No vendor reports the usage of a call that is cut off. The meter's estimate is stored with its
/// end.
#[test]
fn a_cancelled_call_counts_its_metered_usage() {
    let usage = Usage {
        input: 100,
        output: 7,
        ..Usage::default()
    };
    let rates = Rates {
        input: 1_000_000,
        output: 2_000_000,
        ..Rates::default()
    };
    let price = Some(Price {
        usual: rates,
        long: None,
    });
    for (call, price, counted) in [
        (1, price, (107, 114_000, 1, 0)),
        (1, None, (107, 0, 1, 1)),
        // The meter of another call.
        (2, price, (0, 0, 0, 0)),
    ] {
        let mut sim = idle_thread();
        sim.run_line("start t1 \"hi\"");
        sim.owner.meter(Meter::new(call, move || {
            Some(MeteredUsage { usage, price })
        }));
        sim.run_line("interrupt t1");
        let [account] = sim.owner.thread().model_usage() else {
            panic!("one model was called");
        };
        let actual = (
            account.usage.total(),
            account.nano_usd,
            account.estimated,
            account.unpriced,
        );
        assert_eq!(actual, counted);
        // A call that ends well reports its usage itself.
        sim.run_line("start t2 \"ho\" · done 5");
        let accounts = sim.owner.thread().model_usage();
        assert_eq!(accounts[0].usage.total(), counted.0 + 5);
    }
}
