//! Threads as they are on the wire.

use raddle_core::ports::Summary;
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
