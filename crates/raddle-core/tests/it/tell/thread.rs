//! A thread, as the wire shows it.

use raddle_core::ports::Summary;
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

fn shown(thread: &raddle_protocol::Thread) -> (bool, String) {
    let json = serde_json::to_value(thread).expect("JSON");
    (thread.ephemeral, json["status"]["type"].to_string())
}

/// One that is loaded says what it does, and whether it will be kept; a list has only those that are kept.
#[test]
fn a_thread_is_shown_with_what_it_does() {
    for ephemeral in [false, true] {
        let start = ThreadStarted {
            ephemeral,
            ..fixtures::thread_started()
        };
        let mut life = SimulatedThread::new();
        life.owner = ThreadWriter::start(start, crate::simulated::node(1), life.now);
        life.journal.clear();
        life.settle();
        for (line, status) in [("rename \"n\"", "idle"), ("start t1 \"hi\"", "active")] {
            life.say(line);
            let thread = life.owner.thread();
            let status = format!("{status:?}");
            assert_eq!(shown(&view(thread)), (ephemeral, status), "{line}");
            let listed = Summary::of(thread).expect("a thread that was started");
            let unloaded = (false, "\"notLoaded\"".to_owned());
            assert_eq!(shown(&list_view(&listed)), unloaded, "{line}");
        }
    }
}
