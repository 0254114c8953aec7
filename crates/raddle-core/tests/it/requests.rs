//! Requests that are settled, where rule files cannot reach.

use raddle_core::policy::ManagedLimits;
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// A thread whose tool runs and may ask.
fn asking() -> SimulatedThread {
    let mut life = SimulatedThread::new();
    life.say(r#"start t1 "hi" · call i1 shell "a" run · done"#);
    life
}

fn answered_again(life: &SimulatedThread, request: u64) -> Refusal {
    let line = format!("answer {request} zoe decline");
    let thread = life.owner.thread();
    let command = fixtures::command(&line, thread, life.now);
    let refused = thread.decide(command, life.now);
    refused.expect_err("a request is answered once")
}

#[test]
fn what_is_open_is_known_with_what_it_is_about() {
    let mut life = asking();
    life.say("asks i1 · asks i1 · answer 0 ann decline");
    let open = life.owner.thread().requests();
    let open: Vec<_> = open
        .map(|(number, open)| (number.0, open.item.as_str()))
        .collect();
    assert_eq!(open, [(1, "i1")]);
}

#[test]
fn who_answers_late_is_told_who_was_first() {
    let mut life = asking();
    for (request, by) in [(0, "ann"), (1, "bob")] {
        life.say("asks i1");
        life.say(&format!("answer {request} {by} decline"));
    }
    life.say(r#"asks i1 · ended i1 ok """#);
    let by = |by: &str| Settlement::Answered { by: by.to_owned() };
    for (request, how) in [
        (0, by("ann")),
        (1, by("bob")),
        (2, Settlement::Withdrawn {}),
    ] {
        let how = Some(how);
        let told = answered_again(&life, request);
        assert_eq!(told, Refusal::AlreadyResolved { how });
    }
    assert_eq!(answered_again(&life, 3), Refusal::NoRequest);
}

/// What became of older ones is forgotten, but not that they were settled.
#[test]
fn so_many_settled_requests_are_remembered() {
    let mut life = asking();
    for request in 0..=256 {
        let how = Some(Settlement::Answered {
            by: "ann".to_owned(),
        });
        if request > 0 {
            let told = answered_again(&life, 0);
            assert_eq!(told, Refusal::AlreadyResolved { how }, "before {request}");
        }
        life.say("asks i1");
        life.say(&format!("answer {request} ann decline"));
    }
    let told = answered_again(&life, 0);
    assert_eq!(told, Refusal::AlreadyResolved { how: None });
}

/// The fence as rights have made it: what may be written, and whether the network may be used.
fn fence(thread: &Thread) -> String {
    match ManagedLimits::default()
        .widened(thread.settings(), &thread.rights())
        .sandbox
    {
        Sandbox::ReadOnly { roots, network } => format!("{} {network}", roots.join(" ")),
        other => format!("{other:?}"),
    }
}

/// Rights of a turn end with it, those of the session stay; a fork begins without, and nothing of it is kept in
/// the settings.
#[test]
fn rights_last_as_long_as_they_were_given_for() {
    let mut life = SimulatedThread::new();
    life.say(r#"start t1 "hi" · call i1 rights "/a network" ask · call i2 rights "/b" ask · done"#);
    assert_eq!(fence(life.owner.thread()), " false");
    life.say(r#"answer 0 ann gives turn "/a network""#);
    assert_eq!(fence(life.owner.thread()), "/a true");
    life.say(r#"answer 1 ann gives session "/b""#);
    assert_eq!(fence(life.owner.thread()), "/b /a true");
    // Whoever takes the thread next knows as much.
    assert_eq!(fence(&crate::simulated::fold(&life.journal)), "/b /a true");
    assert_eq!(*life.owner.thread().settings(), fixtures::settings());
    life.say("done");
    assert!(life.owner.thread().turn().is_none());
    assert_eq!(fence(life.owner.thread()), "/b false");
    life.say(r#"start t2 "more""#);
    assert_eq!(fence(life.owner.thread()), "/b false");
}
