//! The binary as a process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::stdio::Pipes;
use super::websocket::Websocket;
use super::{TEST_TIMEOUT, eventually};

/// A running server with its own home, killed on drop.
pub struct TestServer {
    child: Child,
    home: TempDir,
    log: Log,
}

/// The exit status of a server, and its stderr.
pub struct ServerExit {
    pub status: ExitStatus,
    pub log: Vec<String>,
}

impl TestServer {
    /// Starts `raddle app-server` with these arguments, and logs all of Raddle's own events as
    /// JSON.
    pub fn start(arguments: &[&str]) -> Self {
        let levels = "raddle_rpc=debug,raddle_server=debug,raddle=debug";
        Self::start_with(arguments, &[("RADDLE_LOG", levels)])
    }

    /// Starts a server for a measurement of its memory. It logs as little as by default, and glibc
    /// returns large blocks as soon as they are free: the measured memory is what the server holds,
    /// not what the allocator keeps in its arenas.
    pub fn start_measured(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[("MALLOC_MMAP_THRESHOLD_", "131072")])
    }

    /// Starts a server from a shell that runs this script first.
    pub fn start_under(before: &str, arguments: &[&str]) -> Self {
        let home = TempDir::new().expect("a home");
        let plain = command(home.path());
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("{before}; exec \"$0\" app-server \"$@\"")])
            .arg(plain.get_program())
            .args(arguments)
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self::of(shell, home)
    }

    /// Starts `raddle app-server` with these arguments and variables.
    pub fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = TempDir::new().expect("a home");
        let mut command = command(home.path());
        command.arg("app-server").args(arguments);
        command.envs(variables.iter().copied());
        Self::of(command, home)
    }

    fn of(mut command: Command, home: TempDir) -> Self {
        let mut child = command.spawn().expect("the binary starts");
        let log = Log::of(child.stderr.take().expect("stderr"));
        Self { child, home, log }
    }

    /// Kills it, and starts another with the same home.
    pub fn start_again(&mut self, arguments: &[&str]) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut command = command(self.home.path());
        command.arg("app-server").args(arguments);
        self.child = command.spawn().expect("the binary starts");
        self.log = Log::of(self.child.stderr.take().expect("stderr"));
    }

    /// Starts with one websocket listener that needs no token.
    pub fn open_websocket(arguments: &[&str]) -> Self {
        let mut all = vec!["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];
        all.extend(arguments);
        Self::start(&all)
    }

    /// The address of its websocket listener.
    pub fn address(&self) -> SocketAddr {
        let line = self.log.wait_for("listening on ws://");
        let (_, address) = line.split_once("ws://").expect("an address");
        address.trim().parse().expect("an address")
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> PathBuf {
        let line = self.log.wait_for("listening on unix://");
        let (_, path) = line.split_once("unix://").expect("a path");
        path.trim().into()
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its stdin and stdout. Once only.
    pub fn pipes(&mut self) -> Pipes {
        Pipes::of(&mut self.child)
    }

    /// The same pipes, unwrapped. Once only.
    pub fn take_stdio(&mut self) -> (ChildStdin, ChildStdout) {
        let pipes = (self.child.stdin.take(), self.child.stdout.take());
        (pipes.0.expect("stdin"), pipes.1.expect("stdout"))
    }

    /// An initialized client on its websocket.
    pub fn client(&self) -> Websocket {
        let mut client = Websocket::connect(self.address());
        client.hello();
        client
    }

    /// An initialized client on its Unix socket.
    pub fn unix_client(&self) -> Websocket {
        let mut client = Websocket::connect_unix(&self.socket());
        client.hello();
        client
    }

    /// Waits for a line on stderr with this text.
    pub fn wait_for(&self, text: &str) -> String {
        self.log.wait_for(text)
    }

    pub fn terminate(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("the process is there");
    }

    /// Waits for its end. It must not have panicked anywhere.
    pub fn ended(mut self) -> ServerExit {
        let begun = Instant::now();
        let status = eventually("the end of the server", || {
            self.child.try_wait().expect("a child")
        });
        let log = self.log.all();
        assert!(begun.elapsed() < TEST_TIMEOUT);
        let panics: Vec<_> = log
            .iter()
            .filter(|line| line.contains("panicked"))
            .collect();
        assert!(panics.is_empty(), "the server panicked: {panics:?}");
        ServerExit { status, log }
    }

    /// Sends SIGTERM, and checks that it exits successfully.
    pub fn stop(self) -> ServerExit {
        self.terminate();
        let ended = self.ended();
        assert!(ended.status.success(), "{:?} {:?}", ended.status, ended.log);
        ended
    }

    /// A line of `/proc/PID/status` in bytes: `VmHWM` is the peak of its memory, `VmRSS` the
    /// current size.
    pub fn memory(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("the process is there");
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("the line");
        let kilobytes = line.split_whitespace().nth(1).expect("a figure");
        kilobytes.parse::<u64>().expect("a figure") << 10
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.pid());
        std::fs::read_dir(path)
            .expect("the process is there")
            .count()
    }

    /// Resets the peak of its memory, so that the next reading covers only what follows.
    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").expect("our own process");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ServerExit {
    /// How many connections the server accepted.
    pub fn connections(&self) -> usize {
        self.events("connected").len()
    }

    /// Sums one of the counters that the server logs at the end of each connection.
    pub fn count(&self, name: &str) -> u64 {
        let figures = self.events("disconnected");
        let figure = |fields: &Value| -> u64 {
            let counts = fields["counts"].as_str().expect("counts");
            let (_, after) = counts
                .split_once(&format!("{name}: "))
                .expect("the counted name");
            let digits = after.find(|c: char| !c.is_ascii_digit());
            after[..digits.unwrap_or(after.len())]
                .parse()
                .expect("a figure")
        };
        figures.iter().map(figure).sum()
    }

    fn events(&self, message: &str) -> Vec<Value> {
        let lines = self.log.iter();
        let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .map(|event| event["fields"].clone())
            .filter(|fields| fields["message"] == message)
            .collect()
    }
}

/// The binary, not started yet, with this home and an otherwise empty environment.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command
        .env_clear()
        .env("RADDLE_HOME", home)
        .env("RADDLE_LOG_FORMAT", "json")
        // Tests read its descriptors and its memory.
        .env("RADDLE_DUMPABLE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The stderr of a server, read continuously: a full pipe would block the server.
struct Log {
    shared: Arc<(Mutex<LogBuffer>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct LogBuffer {
    lines: Vec<String>,
    ended: bool,
}

impl Log {
    fn of(stderr: ChildStderr) -> Self {
        let shared = Arc::new((Mutex::new(LogBuffer::default()), Condvar::new()));
        let reader_shared = shared.clone();
        let reader = std::thread::spawn(move || {
            let (written, changed) = &*reader_shared;
            for line in BufReader::new(stderr).lines() {
                let line = line.expect("stderr is text");
                written.lock().expect("no panic").lines.push(line);
                changed.notify_all();
            }
            written.lock().expect("no panic").ended = true;
            changed.notify_all();
        });
        Self {
            shared,
            reader: Some(reader),
        }
    }

    fn wait_for(&self, text: &str) -> String {
        let (written, changed) = &*self.shared;
        let mut written = written.lock().expect("no panic");
        let begun = Instant::now();
        loop {
            if let Some(line) = written.lines.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let remaining = TEST_TIMEOUT.checked_sub(begun.elapsed());
            let remaining = remaining.filter(|_| !written.ended);
            let Some(remaining) = remaining else {
                panic!("no `{text}` on stderr: {:?}", written.lines);
            };
            written = changed
                .wait_timeout(written, remaining)
                .expect("no panic")
                .0;
        }
    }

    /// All lines, once the process has ended.
    fn all(&mut self) -> Vec<String> {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        std::mem::take(&mut self.shared.0.lock().expect("no panic").lines)
    }
}
