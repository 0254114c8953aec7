//! Requests that are settled, where rule files cannot reach.

use raddle_core::*;

use crate::life::Life;
use crate::words;

/// A thread whose tool runs and may ask.
fn asking() -> Life {
    let mut life = Life::new();
    life.say(r#"start t1 "hi" · call i1 shell "a" run · done"#);
    life
}

fn answered_again(life: &Life, request: u64) -> Refusal {
    let line = format!("answer {request} zoe decline");
    let thread = life.owner.thread();
    let command = words::command(&line, thread, life.now);
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
