//! Signals end the turn, and then the run.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::support::server::TestServer;
use crate::support::terminal::TestTerminal;

/// A model that begins to answer, and no more.
const HELD: &str = "[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n";

#[test]
fn a_signal_interrupts_the_turn() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let bench = ExecHarness::new(HELD);
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
        let shown = ExecOutput::of(show.output().expect("started"));
        assert!(
            shown.out.contains("interrupted: a client asked"),
            "{shown:?}"
        );
    }
}

/// Well below what is waited for a turn or a server to end.
const AT_ONCE: Duration = Duration::from_secs(8);

#[test]
fn a_second_signal_waits_for_nothing() {
    let bench = ExecHarness::new(HELD);
    let terminal = TestTerminal::open();
    let mut exec = bench.command(&["x"]);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    bench.wait_until_held();
    let server = server_of(&child).expect("a server");
    let pid = Pid::from_raw(server.try_into().expect("an id")).expect("an id");
    kill_process(pid, Signal::STOP).expect("it runs");
    eventually("the stop of the server", || {
        has_stopped(server).then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    terminal.wait_for("a second signal ends at once");
    let begun = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(ran.code, Some(143), "{ran:?} {}", terminal.shown());
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    eventually("the end of the server", || has_ended(server).then_some(()));
}

/// Whether every thread of a process has stopped. A signal to stop returns before that.
fn has_stopped(id: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("a process");
    let stats = threads.map(|it| fs::read_to_string(it.expect("a thread").path().join("stat")));
    let mut states = stats.map(|it| it.unwrap_or_default());
    states.all(|it| it.rsplit(") ").next().unwrap_or_default().starts_with('T'))
}

/// Whether a process is gone, or only its parent has not looked yet.
fn has_ended(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    stat.is_empty() || state.starts_with('Z')
}

#[test]
fn a_turn_whose_id_is_not_known_yet_is_interrupted_too() {
    let bench = ExecHarness::new(HELD);
    let arguments = bench.mock.arguments(&[]);
    let mut words = vec!["--listen", "unix://"];
    words.extend(arguments.iter().map(String::as_str));
    let server = TestServer::start(&words);
    let place = bench.home.path().join("detour");
    let way = DelayingProxy::make(&place, server.socket());
    let remote = format!("unix://{}", place.display());
    let running = bench.started(&["--json", "--remote", &remote, "x"]);
    way.held.recv().expect("an answer");
    bench.wait_until_held();
    kill_process(Pid::from_child(&running.child), Signal::INT).expect("it runs");
    way.go.send(()).expect("it waits");
    let ran = running.ended();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    eventually("the end of the call", || {
        (bench.mock.told()["held"] == 0).then_some(())
    });
}

/// A way to a server on which the answer to `turn/start` waits until it is let go.
struct DelayingProxy {
    held: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

impl DelayingProxy {
    fn make(place: &Path, server: PathBuf) -> Self {
        const ANSWER: &[u8] = br#""result":{"turn":{"#;
        let listener = UnixListener::bind(place).expect("a socket");
        let (holds, held) = mpsc::channel();
        let (go, goes) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut server = UnixStream::connect(server).expect("the server");
            let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut seen, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
            while let count @ 1.. = server.read(&mut bytes)? {
                let was_there = seen.windows(ANSWER.len()).any(|it| it == ANSWER);
                seen.extend_from_slice(&bytes[..count]);
                if !was_there && seen.windows(ANSWER.len()).any(|it| it == ANSWER) {
                    holds.send(()).expect("the test waits");
                    goes.recv().expect("the test lets it go");
                }
                client.write_all(&bytes[..count])?;
            }
            client.shutdown(Shutdown::Both)
        });
        Self { held, go }
    }
}
