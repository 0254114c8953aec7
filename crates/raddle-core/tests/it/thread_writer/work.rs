//! Work: started once it is stored, stopped when nobody needs it, and waited for.

use raddle_core::*;

use super::idle_life;
use crate::fixtures;
use crate::simulated::SimulatedThread;

#[test]
fn an_interrupt_is_answered_when_the_turn_has_ended() {
    let mut life = idle_life();
    life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
    life.settle();
    life.say(r#"call i1 shell "sleep" run · done"#);
    life.replies.clear();
    let command = fixtures::command("interrupt t1", life.owner.thread(), life.now);
    let token = life.order(command);
    life.settle();
    assert_eq!(life.replies, []);
    life.say("ended i1 killed \"\"");
    assert_eq!(life.replies, [(token, Ok(CommandOutcome::Done {}))]);
}

/// Only who stops a turn waits for its end.
#[test]
fn while_a_turn_stops_others_are_answered_at_once() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi" · call i1 shell "sleep" run · done · interrupt t1"#);
    let token = life.order(fixtures::rename(Some("n".to_owned())));
    life.settle();
    assert_eq!(life.replies, [(token, Ok(CommandOutcome::Done {}))]);
}

/// A call that broke off is made again; the next question begins anew.
#[test]
fn a_call_of_the_model_knows_what_it_is_for_and_which_attempt_it_is() {
    let mut life = idle_life();
    for (line, purpose, attempt) in [
        ("rename \"n\"", None, 0),
        ("start t1 \"hi\"", Some(Purpose::Answer), 1),
        ("broke 0s", Some(Purpose::Answer), 2),
        ("steer t1 \"more\"", Some(Purpose::Answer), 2),
        ("done", Some(Purpose::Answer), 1),
        ("done", None, 0),
        ("compact t2", Some(Purpose::Compact), 1),
    ] {
        life.say(line);
        let thread = life.owner.thread();
        let found = (thread.purpose(), thread.attempt());
        assert_eq!(found, (purpose, attempt), "{line}");
    }
}

/// However many questions a turn has, its calls are not made again for ever.
#[test]
fn a_turn_has_so_many_retries_and_no_more() {
    let mut life = idle_life();
    life.say("start t1 \"hi\"");
    for retry in 0..100 {
        assert!(life.owner.thread().turn().is_some(), "retry {retry}");
        life.say("broke 0s · steer t1 \"more\" · done");
    }
    life.say("broke 0s");
    assert!(life.owner.thread().turn().is_none());
    let Some(TurnEnd::Failed(error)) = life.owner.thread().last_turn().map(|it| &it.end) else {
        panic!("it did not fail");
    };
    assert_eq!(error.kind, FailureKind::TooManyAttempts);
    let wanted = "gave up after 100 retries in this turn: it broke";
    assert_eq!(error.message, wanted);
}

#[test]
fn what_runs_is_known() {
    let mut life = idle_life();
    for (line, running) in [
        ("start t1 \"hi\"", "CallModel 1"),
        ("call i1 shell \"a\" run", "CallModel 1"),
        ("done", "RunTool i1"),
        ("interrupt t1", "RunTool i1 · StopTool i1"),
        ("ended i1 killed \"\"", ""),
    ] {
        life.say(line);
        let found: Vec<String> = life.owner.running().map(fixtures::effect).collect();
        assert_eq!(found.join(" · "), running, "{line}");
    }
}

/// Work that reported its own end is not stopped, nor is the stopping of work.
#[test]
fn what_nobody_waits_for_is_stopped() {
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
        let mut life = idle_life();
        life.say(line);
        let stops: Vec<String> = life.stops.iter().map(fixtures::effect).collect();
        assert_eq!(stops.join(" · "), stopped, "{line}");
    }
}

/// A tool that does not end once it was told to is given up.
#[test]
fn a_tool_that_does_not_stop_is_stopped_for_good() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi" · call i1 shell "sleep" run · done · interrupt t1"#);
    let wake = life.now.plus_ms(10_000);
    assert_eq!(life.owner.step(life.now), Step::Wait(Some(wake)));
    life.now = wake;
    life.settle();
    let stops: Vec<String> = life.stops.iter().map(fixtures::effect).collect();
    assert_eq!(stops, ["RunTool i1"]);
}

/// A client is asked, and its answer reaches the tool that waits for it, while that runs.
#[test]
fn a_running_tool_is_handed_the_answer_to_its_question() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi" · call i1 shell "a" ask · done · answer 0 ann accept"#);
    assert_eq!(life.asks, [RequestNumber(0)]);
    assert_eq!(life.deliveries, [], "an approval is no answer to a tool");
    life.say("asks i1 · answer 1 ann decline");
    assert_eq!(life.asks, [RequestNumber(0), RequestNumber(1)]);
    let declined = Resolution::Answered {
        by: "ann".to_owned(),
        answer: Box::new(RequestAnswer::Decline {}),
    };
    let delivery = ("i1".into(), RequestNumber(1), declined);
    assert_eq!(life.deliveries, [delivery]);
}

/// Of requests that come and go in one round, only those that are open after it are asked.
#[test]
fn what_is_settled_already_is_not_asked() {
    let mut life = idle_life();
    life.say("start t1 \"hi\"");
    for line in [
        "call i1 shell \"a\" ask",
        "call i2 shell \"b\" ask",
        "answer 0 ann accept",
    ] {
        let command = fixtures::command(line, life.owner.thread(), life.now);
        life.report(command);
    }
    life.settle();
    assert_eq!(life.asks, [RequestNumber(1)]);
}

/// Who is told that nothing was stored can try again elsewhere.
#[test]
fn an_owner_that_gives_up_says_so_to_everyone() {
    let mut life = idle_life();
    life.say("start t1 \"hi\"");
    let under_way = life.order(fixtures::rename(Some("n".to_owned())));
    assert!(matches!(life.owner.step(life.now), Step::Append { .. }));
    let waiting = life.order(fixtures::rename(Some("m".to_owned())));
    let outs = life.owner.give_up("away for too long".to_owned());
    let refused = || Err(Refusal::NotStored("away for too long".to_owned()));
    let call = Effect::CallModel {
        turn: "t1".into(),
        call: 1,
    };
    assert_eq!(
        outs,
        [
            WriterAction::Reply(under_way, refused()),
            WriterAction::Reply(waiting, refused()),
            WriterAction::Stop(call),
        ]
    );
    let ended = WriterEnd::NotStored("away for too long".to_owned());
    assert_eq!(life.owner.step(life.now), Step::Ended(ended));
}

#[test]
fn leaving_and_deleting_end_the_task() {
    for (command, ended) in [
        (Command::Release, WriterEnd::Released),
        (Command::Delete(Delete::default()), WriterEnd::Deleted),
    ] {
        let mut life = idle_life();
        life.order(fixtures::start_turn("t1", TurnKind::Work, Some("hi")));
        life.settle();
        life.order(command);
        life.settle();
        assert_eq!(life.owner.step(life.now), Step::Ended(ended));
        assert_eq!(life.owner.running().count(), 0);
    }
}

/// Whoever is asked hears of it in the same order, whether the call of the model ends in that round or a later one.
#[test]
fn a_question_is_asked_before_what_follows_it_is_told() {
    let mut life = idle_life();
    life.say(r#"start t1 "hi""#);
    for step in [r#"call i1 shell "rm" ask"#, "done 7"] {
        let command = fixtures::command(step, life.owner.thread(), life.now);
        life.report(command);
    }
    let Step::Append { records, .. } = life.owner.step(life.now) else {
        panic!("nothing is stored");
    };
    let head = records.last().map_or(Seq::ZERO, |record| record.seq);
    let outs = life.owner.appended(Ok(head));
    let heard = outs.iter().filter_map(|out| match out {
        WriterAction::Ask(_) => Some("asked"),
        WriterAction::Tell(told) => match &told.record.body {
            RecordBody::Event(event) => match &**event {
                Event::ItemStarted(_) => Some("item"),
                Event::ModelEnded(_) => Some("usage"),
                _ => None,
            },
            RecordBody::Delta(_) => None,
        },
        _ => None,
    });
    let heard: Vec<&str> = heard.collect();
    assert_eq!(heard, ["item", "asked", "usage"]);
}

/// A call that broke after it had condensed the history is not made again: its turn waits for the user's command alone,
/// and never for a time that has passed.
#[test]
fn a_turn_with_nothing_to_ask_waits_for_no_time() {
    let mut life = SimulatedThread::new();
    life.say(r#"compact t1 · condensed i1 "so far" · broke 5s · shell t2 u1 "ls""#);
    life.now = life.now.plus_ms(5_000);
    life.settle();
    assert_eq!(life.owner.thread().wake_at(), None);
    life.say(r#"ended u1 ok "files""#);
    assert!(life.owner.thread().turn().is_none());
}

/// Nobody says what a call used that is cut off. What can be told of it is written down with its end.
#[test]
fn a_call_that_is_cut_off_counts_what_it_had_used() {
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
        // This is about another call.
        (2, price, (0, 0, 0, 0)),
    ] {
        let mut life = idle_life();
        life.say("start t1 \"hi\"");
        life.owner.meter(Meter::new(call, move || {
            Some(MeteredUsage { usage, price })
        }));
        life.say("interrupt t1");
        let [account] = life.owner.thread().model_usage() else {
            panic!("one model was called");
        };
        let found = (
            account.usage.total(),
            account.nano_usd,
            account.estimated,
            account.unpriced,
        );
        assert_eq!(found, counted);
        // A call that ends well says so itself.
        life.say("start t2 \"ho\" · done 5");
        let accounts = life.owner.thread().model_usage();
        assert_eq!(accounts[0].usage.total(), counted.0 + 5);
    }
}
