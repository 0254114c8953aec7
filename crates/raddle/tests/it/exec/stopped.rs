//! Signals end the turn, and then the run.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

#[test]
fn a_signal_interrupts_the_turn() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let bench = Bench::new("[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n");
        let mut running = bench.started(&["--json", "x"]);
        let started = running.until("thread.started");
        bench.wait_until_held();
        kill_process(Pid::from_child(&running.child), signal).expect("it runs");
        let failed = running.until("turn.failed");
        assert_eq!(failed["error"]["message"], "the turn was interrupted");
        let ran = running.ended();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        // The server is gone, and the thread says how its turn ended.
        let mut show = command(bench.home.path());
        show.args([
            "thread",
            "show",
            started["thread_id"].as_str().expect("an id"),
        ]);
        let shown = Ran::of(show.output().expect("started"));
        assert!(
            shown.out.contains("interrupted: a client asked"),
            "{shown:?}"
        );
    }
}
