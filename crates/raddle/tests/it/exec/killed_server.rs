//! A server that is killed during a run.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

const WHOLE: &str = "All of it, from the beginning to the end.";

#[test]
fn a_server_that_is_killed_is_replaced_and_the_run_goes_on() {
    let script = format!(
        "[[answer]]\nmatch = \"go\"\ntimes = 1\nsteps = [{{ text = \"All of\" }}, {{ held = true }}]\n\
         [[answer]]\nsteps = [{{ text = \"{WHOLE}\" }}]\n"
    );
    for quiet in [true, false] {
        let harness = ExecHarness::new(&script);
        let mut running = harness.started(if quiet { &["--json", "go"] } else { &["go"] });
        harness.wait_until_held();
        let server = running.server().expect("a server");
        let pid = Pid::from_raw(server.try_into().expect("an id")).expect("an id");
        kill_process(pid, Signal::KILL).expect("it runs");
        if quiet {
            let message = eventually("the whole", || {
                let item = running.until("item.completed");
                (item["item"]["text"] == WHOLE).then_some(item)
            });
            assert_eq!(message["item"]["type"], "agent_message");
            running.until("turn.completed");
        }
        let output = running.ended();
        assert_eq!(output.code, Some(0), "{output:?}");
        if !quiet {
            assert_eq!(output.out, WHOLE, "{output:?}");
        }
        assert!(output.err.contains("the server was lost"), "{output:?}");
        assert!(!std::path::Path::new(&format!("/proc/{server}")).exists());
    }
}

#[test]
fn a_thread_in_memory_is_lost_with_its_server() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n");
    let mut running = harness.started(&["--json", "--ephemeral", "go"]);
    harness.wait_until_held();
    // Before `exec` has read that the turn began, there is no turn that could fail.
    running.until("turn.started");
    let server = running.server().expect("a server");
    let pid = Pid::from_raw(server.try_into().expect("an id")).expect("an id");
    kill_process(pid, Signal::KILL).expect("it runs");
    let output = running.ended();
    assert_eq!(output.code, Some(1), "{output:?}");
    let events = output.events();
    let last = events.last().expect("events")["type"].as_str();
    assert_eq!(last, Some("turn.failed"), "{output:?}");
}
