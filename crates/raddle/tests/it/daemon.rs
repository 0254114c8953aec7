//! `raddle daemon`: one per home. It is ready when `start` returns, and leaves nothing that blocks
//! the next one.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::config_lock::ConfigWriteLock;
use crate::support::server::command;
use crate::support::websocket::Websocket;
use crate::support::{TEST_TIMEOUT, code, eventually, request};

/// A home whose daemon is stopped on drop.
struct DaemonHome(TempDir);

/// The output of a command.
#[derive(Debug)]
struct DaemonOutput {
    status: i32,
    stdout: String,
    stderr: String,
}

impl DaemonHome {
    fn new() -> Self {
        Self(TempDir::new().expect("a home"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.path());
        command.arg("daemon").args(words).stdin(Stdio::null());
        command
    }

    fn daemon(&self, words: &[&str]) -> DaemonOutput {
        DaemonOutput::of(self.command(words).output().expect("it runs"))
    }

    /// Runs `start`, which must succeed, and returns its JSON.
    fn start(&self, words: &[&str]) -> Value {
        let words = [&["start", "--json"], words].concat();
        let output = self.daemon(&words);
        assert_eq!(output.status, 0, "{output:?}");
        output.json()
    }

    /// Returns the exit status of `status`, and the state.
    fn status(&self) -> (i32, String) {
        let output = self.daemon(&["status", "--json"]);
        let state = output.json()["state"].as_str().expect("a state").to_owned();
        (output.status, state)
    }

    fn client(&self) -> Websocket {
        let mut client = Websocket::connect_unix(&self.socket());
        client.hello();
        client
    }

    fn socket(&self) -> PathBuf {
        self.path()
            .join("app-server-control/app-server-control.sock")
    }
}

impl Drop for DaemonHome {
    fn drop(&mut self) {
        let _ = self.command(&["stop", "--now"]).output();
    }
}

impl DaemonOutput {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self {
            status: output.status.code().expect("an exit status"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

fn signal(pid: &Value, signal: Signal) {
    let pid = pid.as_i64().and_then(|it| i32::try_from(it).ok());
    let pid = pid.and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("the process is there");
}

#[test]
fn it_serves_from_when_start_returns_until_stop_returns() {
    let home = DaemonHome::new();
    assert_eq!(home.status(), (3, "stopped".to_owned()));
    let started = home.start(&[]);
    assert_eq!(started["state"], "running");
    let address = format!("unix://{}", home.socket().display());
    assert_eq!(started["listen"], json!([address]));
    let mut client = home.client();
    assert_eq!(
        code(&client.ask(&request(1, "thread/list", json!({})))),
        None
    );
    assert_eq!(home.status(), (0, "running".to_owned()));

    // Another start changes nothing, and is no error.
    assert_eq!(home.start(&[]), started);
    let refused = home.daemon(&[]);
    assert_eq!(refused.status, 1);
    let pid = &started["pid"];
    let text = format!(
        "raddle: a daemon of this home runs already (pid {pid}); `raddle daemon stop` ends it\n"
    );
    assert_eq!(refused.stderr, text);

    let stopped = home.daemon(&["stop"]);
    assert_eq!((stopped.status, &*stopped.stderr), (0, ""), "{stopped:?}");
    assert_eq!(
        stopped.stdout,
        format!("the daemon (pid {pid}) has ended\n")
    );
    assert!(!home.socket().exists());
    assert_eq!(home.status(), (3, "stopped".to_owned()));
    assert_eq!(home.daemon(&["stop"]).status, 0);
}

#[test]
fn of_concurrent_starts_one_daemon_runs() {
    let home = DaemonHome::new();
    let starts: Vec<Value> = thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| home.start(&[]))).collect();
        let joined = starts.into_iter().map(|it| it.join().expect("no panic"));
        joined.collect()
    });
    assert!(starts.iter().all(|it| *it == starts[0]), "{starts:?}");
}

#[test]
fn a_killed_daemon_does_not_block_the_next() {
    let home = DaemonHome::new();
    let first = home.start(&[]);
    signal(&first["pid"], Signal::KILL);
    eventually("its end", || (home.status().0 == 3).then_some(()));
    let second = home.start(&[]);
    assert_ne!(first["pid"], second["pid"]);
    home.client();
}

#[test]
fn a_failed_start_reports_why_and_leaves_no_daemon() {
    let home = DaemonHome::new();
    for (words, why) in [
        (
            ["--listen", "ws://127.0.0.1:0"],
            "refusing to listen on ws://127.0.0.1:0 without a token",
        ),
        (["--listen", "stdio://"], "a daemon needs an address"),
        (
            ["--listen", "unix:///tmp/it.sock"],
            "is accessible to others",
        ),
    ] {
        let output = home.daemon(&[&["start"], &words[..]].concat());
        assert_eq!((output.status, &*output.stdout), (1, ""), "{output:?}");
        assert!(output.stderr.contains(why), "{output:?}");
        assert_eq!(home.status().0, 3);
    }
}

#[test]
fn a_daemon_without_a_waiting_start_exits() {
    let home = DaemonHome::new();
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    drop(read);
    let mut detached = home.command(&["detached"]);
    let output = detached.stdout(write).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(home.status().0, 3);
    let log = fs::read_to_string(home.path().join("daemon/daemon.log")).expect("a log");
    assert!(log.contains("did not wait for it"), "{log}");
}

#[test]
fn stop_waits_for_running_requests() {
    let home = DaemonHome::new();
    home.start(&[]);
    let mut client = home.client();
    let slow = ConfigWriteLock::new(home.path());
    client.send(&ConfigWriteLock::request("slow"));
    assert_eq!(
        code(&client.ask(&request(1, "account/read", json!({})))),
        None
    );

    let late = home.daemon(&["stop", "--timeout", "0"]);
    assert_eq!(late.status, 1, "{late:?}");
    assert!(late.stderr.contains("raddle daemon stop --now"), "{late:?}");
    eventually("that it ends", || {
        (home.status() == (4, "ending".to_owned())).then_some(())
    });

    // A second `stop` only waits: the work in progress is not cut off.
    let second = home.daemon(&["stop", "--timeout", "0"]);
    assert_eq!(second.status, 1, "{second:?}");
    drop(slow);
    ConfigWriteLock::check(&client.receive());
    assert_eq!(home.daemon(&["stop"]).status, 0);
}

/// The second `stop` comes before the daemon has acknowledged the first, and must not cut off its
/// work.
#[test]
fn concurrent_stops_all_wait() {
    let home = DaemonHome::new();
    home.start(&[]);
    let mut client = home.client();
    let slow = ConfigWriteLock::new(home.path());
    client.send(&ConfigWriteLock::request("slow"));
    client.ask(&request(1, "account/read", json!({})));
    let stops: Vec<Child> = (0..6)
        .map(|_| {
            let mut stop = home.command(&["stop"]);
            stop.spawn().expect("it starts")
        })
        .collect();
    eventually("that it ends", || {
        (home.status() == (4, "ending".to_owned())).then_some(())
    });
    drop(slow);
    ConfigWriteLock::check(&client.receive());
    for stop in stops {
        let output = DaemonOutput::of(stop.wait_with_output().expect("it ends"));
        assert_eq!((output.status, &*output.stderr), (0, ""), "{output:?}");
    }
    let log = fs::read_to_string(home.path().join("daemon/daemon.log")).expect("a log");
    assert!(!log.contains("second signal"), "{log}");
}

#[test]
fn every_line_of_its_log_has_a_time() {
    for format in ["text", "json"] {
        let home = DaemonHome::new();
        let mut start = home.command(&["start"]);
        start
            .env("RADDLE_LOG", "info")
            .env("RADDLE_LOG_FORMAT", format);
        let started = DaemonOutput::of(start.output().expect("it runs"));
        assert_eq!(started.status, 0, "{started:?}");
        assert_eq!(home.daemon(&["stop"]).status, 0);
        let log = fs::read_to_string(home.path().join("daemon/daemon.log")).expect("a log");
        assert!(log.contains("listening on unix://"), "{log}");
        for line in log.lines() {
            let time = match format {
                "json" => {
                    let event: Value = serde_json::from_str(line).expect(line);
                    event["timestamp"].as_str().expect(line).to_owned()
                }
                _ => line.to_owned(),
            };
            // As in `2026-11-17T20:31:07.412Z`.
            assert_eq!((&time[..2], &time[10..11]), ("20", "T"), "{line}");
        }
    }
}

/// A process that waits for the end of a pipe does not wait for the daemon.
#[test]
fn descriptors_of_start_are_not_inherited() {
    let home = DaemonHome::new();
    let (mut pipe, write_end) = std::io::pipe().expect("a pipe");
    let start = home.command(&["start"]);
    // `Command` can pass no more than three descriptors, so a shell does it.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "exec 7>&1 1>/dev/null; exec \"$@\"", "sh"])
        .arg(start.get_program())
        .args(start.get_args())
        .envs(
            start
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(write_end);
    assert!(shell.status().expect("it runs").success());
    drop(shell);
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(pipe.read(&mut [0]).expect("its end")));
    assert_eq!(
        receiver.recv_timeout(TEST_TIMEOUT),
        Ok(0),
        "the daemon has it"
    );
    assert_eq!(home.status().0, 0);
}

/// At any log level: `start` reads exactly one line from its stdout.
#[test]
fn stdout_carries_only_the_ready_line() {
    let home = DaemonHome::new();
    let mut start = home.command(&["start", "--json"]);
    let output = DaemonOutput::of(start.env("RADDLE_LOG", "trace").output().expect("it runs"));
    assert_eq!(output.status, 0, "{output:?}");
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    let pid = &output.json()["pid"];
    // It closes the pipe to `start` after that line.
    eventually("a stdout that leads nowhere", || {
        let stdout = fs::read_link(format!("/proc/{pid}/fd/1")).expect("its stdout");
        (stdout == Path::new("/dev/null")).then_some(())
    });
}

#[test]
fn stop_now_kills_a_stuck_daemon() {
    let home = DaemonHome::new();
    let started = home.start(&[]);
    signal(&started["pid"], Signal::STOP);
    let output = home.daemon(&["stop", "--now"]);
    assert_eq!(output.status, 0, "{output:?}");
    assert_eq!(home.status().0, 3);
    // Its leftovers do not block the next one.
    home.start(&[]);
    home.client();
}

#[test]
fn in_the_foreground_it_notifies_the_service_manager() {
    let home = DaemonHome::new();
    let manager = home.path().join("manager");
    let socket = UnixDatagram::bind(&manager).expect("a socket");
    socket
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    let mut command = home.command(&[]);
    command.env("NOTIFY_SOCKET", &manager).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    assert_eq!(receive_notification(&socket), "READY=1");
    home.client();
    assert_eq!(home.start(&[])["pid"], child.id());
    assert_eq!(home.daemon(&["stop"]).status, 0);
    assert_eq!(receive_notification(&socket), "STOPPING=1");
    assert_eq!(ended(&mut child), 0);
}

/// Only if requested, and for as long as it runs.
#[test]
fn in_the_foreground_it_sends_watchdog_heartbeats() {
    let home = DaemonHome::new();
    let manager = home.path().join("manager");
    let socket = UnixDatagram::bind(&manager).expect("a socket");
    socket
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    let mut command = home.command(&[]);
    command
        .env("NOTIFY_SOCKET", &manager)
        .env("WATCHDOG_USEC", "5000000")
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    for word in ["READY=1", "WATCHDOG=1", "WATCHDOG=1"] {
        assert_eq!(receive_notification(&socket), word);
    }
    assert_eq!(home.daemon(&["stop"]).status, 0);
    assert_eq!(ended(&mut child), 0);
}

fn receive_notification(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("a word");
    String::from_utf8(bytes[..length].to_vec()).expect("text")
}

fn ended(child: &mut Child) -> i32 {
    let status = child.wait().expect("a child");
    status.code().expect("an exit status")
}

#[test]
fn a_long_log_is_set_aside() {
    let home = DaemonHome::new();
    let folder = home.path().join("daemon");
    fs::create_dir(&folder).expect("a folder");
    let log = File::create(folder.join("daemon.log")).expect("a log");
    log.set_len(9 << 20).expect("it is long");
    let started = home.start(&[]);
    assert_eq!(started["log"], json!(folder.join("daemon.log")));
    let length = |name: &str| fs::metadata(folder.join(name)).expect("a log").len();
    assert_eq!(length("daemon.old.log"), 9 << 20);
    assert!(length("daemon.log") < 1 << 20);
}

#[test]
fn reading_its_lock_file_does_not_release_the_lock() {
    let home = DaemonHome::new();
    let started = home.start(&[]);
    let mut client = home.client();
    let lock = home.path().join("daemon/lock");
    let read = client.ask(&request(1, "fs/readFile", json!({ "path": lock })));
    // Opening and closing the file would release the lock, so the home is closed to clients.
    assert_eq!(read["error"]["data"]["errorInfo"], "closed_path", "{read}");
    assert_eq!(home.status().0, 0);
    assert_eq!(home.start(&[])["listen"], started["listen"]);
    let output = home.daemon(&["stop"]);
    assert!(output.status == 0, "{output:?}");
}
