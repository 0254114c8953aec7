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

/// A model that starts its answer and never completes it.
const HELD: &str = "[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n";

#[test]
fn a_signal_interrupts_the_turn() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let harness = ExecHarness::new(HELD);
        let mut running = harness.started(&["--json", "x"]);
        let started = running.until("thread.started");
        harness.wait_until_held();
        kill_process(Pid::from_child(&running.child), signal).expect("it runs");
        let failed = running.until("turn.failed");
        assert_eq!(failed["error"]["message"], "the turn was interrupted");
        let output = running.ended();
        assert_eq!(output.code, Some(code), "{output:?}");
        // The server has ended, and the thread shows how its turn ended.
        let mut show = command(harness.home.path());
        show.args([
            "thread",
            "show",
            started["thread_id"].as_str().expect("an id"),
        ]);
        let shown = ExecOutput::of(show.output().expect("started"));
        assert!(
            shown.out.contains("interrupted: requested by a client"),
            "{shown:?}"
        );
    }
}

/// Well below the timeouts for a turn or a server to end.
const AT_ONCE: Duration = Duration::from_secs(8);

#[test]
fn a_second_signal_waits_for_nothing() {
    let harness = ExecHarness::new(HELD);
    let terminal = TestTerminal::open();
    let mut exec = harness.command(&["x"]);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    harness.wait_until_held();
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
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(143), "{output:?} {}", terminal.shown());
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    eventually("the end of the server", || has_ended(server).then_some(()));
}

/// Whether every thread of a process has stopped. Sending SIGSTOP returns before that.
fn has_stopped(id: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("a process");
    let stats = threads.map(|it| fs::read_to_string(it.expect("a thread").path().join("stat")));
    let mut states = stats.map(|it| it.unwrap_or_default());
    states.all(|it| it.rsplit(") ").next().unwrap_or_default().starts_with('T'))
}

/// Whether a process has ended, perhaps as a zombie.
fn has_ended(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    stat.is_empty() || state.starts_with('Z')
}

#[test]
fn a_turn_without_a_known_id_is_interrupted_too() {
    let harness = ExecHarness::new(HELD);
    let arguments = harness.mock.arguments(&[]);
    let mut words = vec!["--listen", "unix://"];
    words.extend(arguments.iter().map(String::as_str));
    let server = TestServer::start(&words);
    let socket = harness.home.path().join("detour");
    let proxy = DelayingProxy::make(&socket, server.socket());
    let remote = format!("unix://{}", socket.display());
    let running = harness.started(&["--json", "--remote", &remote, "x"]);
    proxy.answer_held.recv().expect("an answer");
    harness.wait_until_held();
    kill_process(Pid::from_child(&running.child), Signal::INT).expect("it runs");
    proxy.release.send(()).expect("it waits");
    let output = running.ended();
    assert_eq!(output.code, Some(130), "{output:?}");
    eventually("the end of the call", || {
        (harness.mock.request_log()["held"] == 0).then_some(())
    });
}

/// A proxy that delays the response to `turn/start`.
struct DelayingProxy {
    answer_held: mpsc::Receiver<()>,
    release: mpsc::Sender<()>,
}

impl DelayingProxy {
    fn make(socket: &Path, server: PathBuf) -> Self {
        const ANSWER: &[u8] = br#""result":{"turn":{"#;
        let listener = UnixListener::bind(socket).expect("a socket");
        let (sender, answer_held) = mpsc::channel();
        let (release, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut server = UnixStream::connect(server).expect("the server");
            let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut received, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
            while let count @ 1.. = server.read(&mut bytes)? {
                let was_there = received.windows(ANSWER.len()).any(|it| it == ANSWER);
                received.extend_from_slice(&bytes[..count]);
                if !was_there && received.windows(ANSWER.len()).any(|it| it == ANSWER) {
                    sender.send(()).expect("the test waits");
                    receiver.recv().expect("the test lets it go");
                }
                client.write_all(&bytes[..count])?;
            }
            client.shutdown(Shutdown::Both)
        });
        Self {
            answer_held,
            release,
        }
    }
}
