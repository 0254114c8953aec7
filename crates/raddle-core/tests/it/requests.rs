//! Resolved requests, where rule files cannot reach.

use raddle_core::policy::ManagedLimits;
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Creates a thread whose running tool may send requests.
fn asking() -> SimulatedThread {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"start t1 "hi" · call i1 shell "a" run · done"#);
    sim
}

fn second_answer(sim: &SimulatedThread, request: u64) -> Refusal {
    let line = format!("answer {request} zoe decline");
    let thread = sim.owner.thread();
    let command = fixtures::command(&line, thread, sim.now);
    let result = thread.decide(command, sim.now);
    result.expect_err("a request is answered once")
}

#[test]
fn open_requests_name_their_items() {
    let mut sim = asking();
    sim.run_line("asks i1 · asks i1 · answer 0 ann decline");
    let open = sim.owner.thread().requests();
    let open: Vec<_> = open
        .map(|(number, open)| (number.0, open.item.as_str()))
        .collect();
    assert_eq!(open, [(1, "i1")]);
}

#[test]
fn a_late_answer_gets_the_first_resolution() {
    let mut sim = asking();
    for (request, by) in [(0, "ann"), (1, "bob")] {
        sim.run_line("asks i1");
        sim.run_line(&format!("answer {request} {by} decline"));
    }
    sim.run_line(r#"asks i1 · ended i1 ok """#);
    let by = |by: &str| Settlement::Answered { by: by.to_owned() };
    for (request, how) in [
        (0, by("ann")),
        (1, by("bob")),
        (2, Settlement::Withdrawn {}),
    ] {
        let how = Some(how);
        let refusal = second_answer(&sim, request);
        assert_eq!(refusal, Refusal::AlreadyResolved { how });
    }
    assert_eq!(second_answer(&sim, 3), Refusal::NoRequest);
}

/// How older requests were resolved is dropped, but not that they were.
#[test]
fn a_maximum_of_resolved_requests_is_kept() {
    let mut sim = asking();
    for request in 0..=256 {
        let how = Some(Settlement::Answered {
            by: "ann".to_owned(),
        });
        if request > 0 {
            let refusal = second_answer(&sim, 0);
            assert_eq!(
                refusal,
                Refusal::AlreadyResolved { how },
                "before {request}"
            );
        }
        sim.run_line("asks i1");
        sim.run_line(&format!("answer {request} ann decline"));
    }
    let refusal = second_answer(&sim, 0);
    assert_eq!(refusal, Refusal::AlreadyResolved { how: None });
}

/// Formats the sandbox with granted rights: the writable paths, and whether the network may be
/// used.
fn sandbox(thread: &Thread) -> String {
    match ManagedLimits::default()
        .widened(thread.settings(), &thread.rights())
        .sandbox
    {
        Sandbox::ReadOnly { roots, network, .. } => format!("{} {network}", roots.join(" ")),
        other => format!("{other:?}"),
    }
}

/// Rights of a turn end with it, those of the session stay. A fork begins without them, and the
/// settings contain none of them.
#[test]
fn rights_last_for_their_scope() {
    let mut sim = SimulatedThread::new();
    sim.run_line(
        r#"start t1 "hi" · call i1 rights "/a network" ask · call i2 rights "/b" ask · done"#,
    );
    assert_eq!(sandbox(sim.owner.thread()), " false");
    sim.run_line(r#"answer 0 ann gives turn "/a network""#);
    assert_eq!(sandbox(sim.owner.thread()), "/a true");
    sim.run_line(r#"answer 1 ann gives session "/b""#);
    assert_eq!(sandbox(sim.owner.thread()), "/b /a true");
    // The next owner knows the same rights.
    assert_eq!(sandbox(&crate::simulated::fold(&sim.journal)), "/b /a true");
    assert_eq!(*sim.owner.thread().settings(), fixtures::settings());
    sim.run_line("done");
    assert!(sim.owner.thread().turn().is_none());
    assert_eq!(sandbox(sim.owner.thread()), "/b false");
    sim.run_line(r#"start t2 "more""#);
    assert_eq!(sandbox(sim.owner.thread()), "/b false");
}
