//! Threads as they are on the wire.

use raddle_core::ports::{Summary, TurnEntry};
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

fn ephemeral_and_status(thread: &raddle_protocol::Thread) -> (bool, String) {
    let json = serde_json::to_value(thread).expect("JSON");
    (thread.ephemeral, json["status"]["type"].to_string())
}

/// A loaded thread shows its status, and whether it is stored; a list has only stored ones.
#[test]
fn a_loaded_thread_shows_its_status() {
    for ephemeral in [false, true] {
        let start = ThreadStarted {
            ephemeral,
            ..fixtures::thread_started()
        };
        let mut sim = SimulatedThread::new();
        sim.owner = ThreadWriter::start(start, crate::simulated::node(1), sim.now);
        sim.journal.clear();
        sim.settle();
        for (line, status) in [("rename \"n\"", "idle"), ("start t1 \"hi\"", "active")] {
            sim.run_line(line);
            let thread = sim.owner.thread();
            let status = format!("{status:?}");
            assert_eq!(
                ephemeral_and_status(&view(thread)),
                (ephemeral, status),
                "{line}"
            );
            let listed = Summary::of(thread).expect("a thread that was started");
            let unloaded = (false, "\"notLoaded\"".to_owned());
            assert_eq!(
                ephemeral_and_status(&list_view(&listed)),
                unloaded,
                "{line}"
            );
        }
    }
}

/// An interruption that no client asked for is explained.
#[test]
fn a_turn_that_ended_with_its_server_has_an_error() {
    let requested = Cause::Client { principal: None };
    for (cause, expected) in [
        (
            Cause::OwnerLost {},
            Some("the server ended unexpectedly during this turn"),
        ),
        (
            Cause::Shutdown {},
            Some("the server was shut down during this turn"),
        ),
        (requested, None),
    ] {
        let turn = turn_view(&TurnEntry {
            turn: "t1".into(),
            root: None,
            from: Seq::ZERO,
            started_at: Timestamp(1000),
            ended: Some((TurnEnd::Interrupted(cause), Timestamp(2000))),
        });
        assert_eq!(turn.status, raddle_protocol::TurnStatus::Interrupted);
        let message = turn.error.map(|it| it.message);
        let actual = message.as_deref().and_then(|it| it.split(';').next());
        assert_eq!(actual, expected);
    }
}
