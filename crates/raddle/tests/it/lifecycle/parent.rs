//! The process that started the server: slow, exited, or with unusual descriptors.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::server::{TestServer, command};
use crate::support::stdio::Pipes;
use crate::support::{TEST_TIMEOUT, code, eventually, initialize, request};

/// A server whose pipes are the test's own.
struct PipedServer {
    child: Child,
    _home: TempDir,
}

impl PipedServer {
    fn with(stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> Self {
        let home = TempDir::new().expect("a home");
        let mut command = command(home.path());
        command.arg("app-server").stdin(stdin).stdout(stdout);
        Self {
            child: command.spawn().expect("the binary starts"),
            _home: home,
        }
    }

    /// Returns its exit status and its stderr.
    fn ended(mut self) -> (ExitStatus, String) {
        let status = eventually("the end of the server", || {
            self.child.try_wait().expect("a child")
        });
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().expect("stderr");
        pipe.read_to_string(&mut stderr).expect("text");
        assert!(!stderr.contains("panicked"), "{stderr}");
        (status, stderr)
    }
}

impl Drop for PipedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let home = TempDir::new().expect("a home");
    let full = File::options().write(true).open("/dev/full");
    let mut command = command(home.path());
    command
        .arg("app-server")
        .env("RADDLE_LOG", "trace")
        .stderr(full.expect("a device that is always full"));
    let mut server = PipedServer {
        child: command.spawn().expect("the binary starts"),
        _home: home,
    };
    let mut pipes = Pipes::of(&mut server.child);
    pipes.hello();
    // This request is logged on its way.
    pipes.send(&request(1, "thread/start", json!({})));
    let started = std::iter::from_fn(|| pipes.next()).find(|it| it["id"] == 1);
    let started = started.expect("an answer");
    assert_eq!(code(&started), None, "{started}");
    pipes.close();
    let status = eventually("the end of the server", || {
        server.child.try_wait().expect("a child")
    });
    assert_eq!(status.code(), Some(0));
}

fn lines(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let line = |mut frame: Vec<u8>| {
        frame.push(b'\n');
        frame
    };
    frames.into_iter().flat_map(line).collect()
}

/// The end of stdin sets no deadline: the answers are more than a pipe holds, and the parent reads
/// them slowly, for longer than any fixed timeout of this server ever was.
#[test]
fn a_slow_parent_gets_every_answer_after_closing_stdin() {
    const REQUESTS: usize = 500;
    let mut server = PipedServer::with(Stdio::piped(), Stdio::piped());
    let mut stdin = server.child.stdin.take().expect("stdin");
    let asks = (0..REQUESTS).map(|number| {
        let id = format!("{number} {}", "x".repeat(900));
        request(id, "permissionProfile/list", json!({}))
    });
    let asks = lines([initialize("hello")].into_iter().chain(asks));
    stdin.write_all(&asks).expect("the server reads");
    drop(stdin);

    let mut stdout = server.child.stdout.take().expect("stdout");
    let begun = Instant::now();
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stdout.read(&mut chunk).expect("more, or the end");
        if count == 0 {
            break;
        }
        all.extend_from_slice(&chunk[..count]);
        // This makes it slow.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begun.elapsed() > Duration::from_secs(6), "it was not slow");
    assert!(all.ends_with(b"\n"), "the last line is whole");
    let answers = all.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let answer: Value = serde_json::from_slice(line).expect("a message");
        assert_eq!(code(&answer), None, "{answer}");
    });
    assert_eq!(answers.count(), REQUESTS + 1);
    let (status, stderr) = server.ended();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn a_parent_that_stops_reading_makes_the_exit_a_failure() {
    let mut server = PipedServer::with(Stdio::piped(), Stdio::piped());
    drop(server.child.stdout.take());
    let mut stdin = server.child.stdin.take().expect("stdin");
    let _ = stdin.write_all(&lines([initialize("hello")]));
    let (status, stderr) = server.ended();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("raddle: responses are lost: "), "{stderr}");
}

/// Clients of other listeners notice nothing, until the parent itself has exited.
#[test]
fn a_parent_that_stops_reading_ends_no_other_connection() {
    let mut server = TestServer::open_websocket(&["--listen", "stdio://"]);
    let client = server.client();
    let (mut stdin, stdout) = server.take_stdio();
    drop(stdout);
    stdin
        .write_all(&lines([initialize("hello")]))
        .expect("it reads");
    server.wait_for("the connection to the parent has ended");
    // Its stdin is no longer read as requests.
    stdin
        .write_all(&lines([request(1, "account/read", json!({}))]))
        .expect("it is passed over");
    for mut client in [client, server.client()] {
        let answer = client.ask(&request(1, "account/read", json!({})));
        assert_eq!(code(&answer), None, "{answer}");
        client.disconnect();
    }
    drop(stdin);
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0), "{:?}", ended.log);
}

#[test]
fn a_parent_that_exits_without_requests_is_no_failure() {
    let mut server = PipedServer::with(Stdio::piped(), Stdio::piped());
    drop(server.child.stdout.take());
    drop(server.child.stdin.take());
    let (status, stderr) = server.ended();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn a_stdin_that_cannot_be_read_is_a_failure() {
    // A folder can be opened but not read.
    let folder = File::open("/").expect("a folder");
    let (status, stderr) = PipedServer::with(folder, Stdio::piped()).ended();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("raddle: stdin failed: "), "{stderr}");
}

/// Node, for one, creates such pipes, and all holders of a pipe share the flag.
#[test]
fn pipes_that_do_not_block_will_do() {
    let pipe = || -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe")
    };
    let (their_stdin, stdin) = pipe();
    let (stdout, their_stdout) = pipe();
    let server = PipedServer::with(their_stdin, their_stdout);
    let (mut stdin, mut stdout) = (File::from(stdin), File::from(stdout));
    // More than a pipe holds, and the answer is as long.
    let long = "x".repeat(1000);
    stdin
        .write_all(&lines([initialize("hello")]))
        .expect("it fits");
    let mut buffer = PipeBuffer::default();
    buffer.lines(&mut stdout, 1);
    // For a moment no data comes, and that is not the end.
    for round in 0..4 {
        for number in 0..40 {
            let id = format!("{round} {number} {long}");
            let ask = lines([request(id, "permissionProfile/list", json!({}))]);
            stdin.write_all(&ask).expect("it fits");
        }
        buffer.lines(&mut stdout, 1 + 40 * (round + 1));
    }
    drop(stdin);
    let (status, stderr) = server.ended();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The data read from a non-blocking pipe.
#[derive(Default)]
struct PipeBuffer(Vec<u8>);

impl PipeBuffer {
    /// Reads until this many lines have come.
    fn lines(&mut self, stdout: &mut File, count: usize) {
        let mut chunk = vec![0; 4096];
        eventually("the answers", || {
            while let Ok(count @ 1..) = stdout.read(&mut chunk) {
                self.0.extend_from_slice(&chunk[..count]);
            }
            let ends = self.0.iter().filter(|byte| **byte == b'\n').count();
            (ends >= count).then_some(())
        });
    }
}

#[test]
fn a_terminal_gets_a_usage_hint() {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let program_side =
        open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
    let mut server = PipedServer::with(program_side, Stdio::piped());
    let mut stderr = BufReader::new(server.child.stderr.take().expect("stderr"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert!(line.contains("speaks JSON-RPC on stdin"), "{line}");
    assert!(line.contains("press Ctrl-D to end"), "{line}");
    // Check that this is true.
    let mut ours = File::from(ours);
    ours.write_all(b"\x04").expect("a key");
    let begun = Instant::now();
    let status = eventually("the end of the server", || {
        server.child.try_wait().expect("a child")
    });
    assert!(begun.elapsed() < TEST_TIMEOUT);
    assert_eq!(status.code(), Some(0));
}
