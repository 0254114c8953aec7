//! Runs programs and leaves no process of them behind.
//!
//! ```text
//! server ── spawner thread ── keeper ── command ── its children …
//! ```
//!
//! The server communicates with a keeper over a socket and with the command over pipes or a
//! terminal. Whatever closes the socket (an order, a dropped [`Exit`], the server's death) ends the
//! command with all its descendants. See *Processes* in `ARCHITECTURE.md`.

mod blocking;
mod descendants;
mod keeper;
mod spawner;
mod stdio;
mod wire;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;

use rustix::net::{Shutdown, shutdown};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};

pub(crate) use self::blocking::run;
pub use self::keeper::{KEEP, keep};
pub use self::spawner::KeeperCommand;
use self::spawner::Spawner;
pub use self::stdio::{Input, InputFull, Output, Stdio, TerminalSize};
pub use self::wire::ExitStatus;
use self::wire::{KeeperOrder, KeeperReport};
use crate::confinement::ConfinedLaunch;
use crate::launch::Launch;

/// Longest line of a keeper's report.
const REPORT_BYTES_MAX: usize = 4 << 10;

/// Starts programs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Launcher {
    spawner: Spawner,
}

/// A program that was started, in parts that can be used separately.
#[derive(Debug)]
pub struct ChildProcess {
    /// Its stdin, unless it has none.
    pub input: Option<Input>,
    /// Its stdout; with a terminal or one pipe, all of its output.
    pub stdout: Output,
    /// Its stderr, unless that goes where stdout goes.
    pub stderr: Option<Output>,
    /// Ends the program, or resizes its terminal.
    pub control: Control,
    /// Reports its start and its end. Dropping it ends the program.
    pub exit: Exit,
}

/// Reason why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its working directory cannot be entered.
    #[error("the folder cannot be entered: {0}")]
    Folder(io::Error),
    /// It does not exist, or may not be run.
    #[error("the program cannot be started: {0}")]
    Program(io::Error),
    /// The keeper could not be started, or ended before its first report.
    #[error("the keeper of the program cannot be started: {0}")]
    Keeper(io::Error),
    /// It was ended before it ran.
    #[error("the program was ended before it ran")]
    Ended,
}

/// Reason why a program has no output.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its pipes could not be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It ended with a status other than 0.
    #[error("it ended with {}", .0.code())]
    Failed(ExitStatus),
    /// Its keeper was killed.
    #[error("it was killed")]
    Killed,
}

/// Exit status of a program, and the processes that it left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitReport {
    /// Exit status of the program itself; `None` if its keeper was killed.
    pub status: Option<ExitStatus>,
    /// Number of processes that had to be killed, the program itself included if it ignored the
    /// request to end.
    pub killed: usize,
    /// The names of the first of them.
    pub names: Vec<String>,
    /// The names of the first processes that could not be killed, such as one that belongs to
    /// another user by now.
    pub survivors: Vec<String>,
}

impl ExitReport {
    /// Adds a keeper's report; returns true if it was the last.
    fn apply(&mut self, report: KeeperReport) -> bool {
        match report {
            KeeperReport::Exited(status) => self.status = Some(status),
            KeeperReport::Survivors { names } => self.survivors = names,
            KeeperReport::AllGone {
                killed: ended,
                names,
            } => {
                self.killed = ended;
                self.names = names;
                return true;
            }
            KeeperReport::Started(_) | KeeperReport::NoFolder(_) | KeeperReport::NoProgram(_) => {}
        }
        false
    }
}

impl Launcher {
    /// Builds a launcher whose keepers are started with this command.
    pub fn new(keeper: KeeperCommand) -> Self {
        Self {
            spawner: Spawner::new(keeper),
        }
    }

    /// Starts a program. It does not wait: [`Exit::started`] reports whether the start succeeded.
    /// The other parts can be used before that.
    pub fn start(&self, launch: Launch, stdio: Stdio) -> io::Result<ChildProcess> {
        let (process, start) = self.open(stdio)?;
        start.with(launch)?;
        Ok(process)
    }

    /// Runs a program without stdin, and returns its stdout: all of it, or the first bytes and at
    /// least one more than `bytes_max`. Its stderr may hold a secret, and is discarded. Dropping
    /// the future ends the program.
    pub async fn output(&self, launch: Launch, bytes_max: usize) -> Result<Vec<u8>, OutputError> {
        let process = self.start(launch, Stdio::Pipes { input: false })?;
        process.output(bytes_max).await
    }

    /// Runs a command in its sandbox, as [`Self::output`] runs a program.
    pub async fn confined_output(
        &self,
        confined: &ConfinedLaunch,
        bytes_max: usize,
    ) -> Result<Vec<u8>, OutputError> {
        let (process, start) = self.open(Stdio::Pipes { input: false })?;
        start.confined(confined)?;
        process.output(bytes_max).await
    }

    /// Opens the parts of a program whose launch is not known yet. They can be used already, also
    /// to end it.
    pub fn open(&self, stdio: Stdio) -> io::Result<(ChildProcess, PendingStart)> {
        let ends = stdio.open()?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(ours)?);
        let (started, starting) = oneshot::channel();
        let control = Control {
            socket: socket.clone(),
            is_ending: Arc::default(),
            terminal: ends.terminal,
        };
        let process = ChildProcess {
            input: ends.input,
            stdout: ends.stdout,
            stderr: ends.stderr,
            exit: Exit {
                control: control.clone(),
                spawner: self.spawner.clone(),
                keeper: None,
                starting: Some(starting),
                unread: Vec::new(),
            },
            control,
        };
        let start = PendingStart {
            socket,
            theirs,
            streams: ends.theirs,
            has_terminal: matches!(stdio, Stdio::Terminal(_)),
            spawner: self.spawner.clone(),
            started,
        };
        Ok((process, start))
    }
}

impl ChildProcess {
    /// Waits until the program has ended, and returns its stdout.
    async fn output(self, bytes_max: usize) -> Result<Vec<u8>, OutputError> {
        let Self {
            stdout,
            stderr,
            mut exit,
            ..
        } = self;
        exit.started().await?;
        let drain = async {
            match &stderr {
                Some(stderr) => stderr.read_within(0).await.map(drop),
                None => Ok(()),
            }
        };
        let (written, _, report) = tokio::join!(stdout.read_within(bytes_max), drain, exit.ended());
        match report.status {
            Some(ExitStatus::Exit(0)) => Ok(written?),
            Some(status) => Err(OutputError::Failed(status)),
            None => Err(OutputError::Killed),
        }
    }
}

/// A program that is about to be started.
#[derive(Debug)]
pub struct PendingStart {
    socket: Arc<UnixStream>,
    theirs: std::os::unix::net::UnixStream,
    streams: [OwnedFd; 3],
    has_terminal: bool,
    spawner: Spawner,
    started: oneshot::Sender<io::Result<Child>>,
}

impl PendingStart {
    /// Starts this program, without waiting.
    pub fn with(self, launch: Launch) -> io::Result<()> {
        self.send_order(launch, false)
    }

    /// Starts a command in its sandbox, without waiting.
    pub fn confined(self, confined: &ConfinedLaunch) -> io::Result<()> {
        self.send_order(confined.launch.clone(), confined.is_confined())
    }

    fn send_order(self, launch: Launch, is_confined: bool) -> io::Result<()> {
        let order = KeeperOrder {
            launch,
            has_terminal: self.has_terminal,
            is_confined,
        };
        let order = order.write();
        let socket = self.socket;
        let streams = self.streams.each_ref().map(AsFd::as_fd);
        wire::send_head(socket.as_fd(), order.len(), &streams)?;
        // Most orders fit into one write, and then nothing can truncate them.
        let sent = rustix::io::write(&*socket, &order).unwrap_or(0);
        if sent < order.len() {
            tokio::spawn(send(socket, order, sent));
        }
        self.spawner.start(self.theirs.into(), self.started)
    }
}

/// Sends the rest of an order. If the keeper has exited, the reader of its reports notices.
async fn send(socket: Arc<UnixStream>, order: Vec<u8>, sent: usize) {
    let mut rest = &order[sent..];
    while !rest.is_empty() {
        if socket.writable().await.is_err() {
            return;
        }
        match socket.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Controls a running program. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    socket: Arc<UnixStream>,
    is_ending: Arc<watch::Sender<bool>>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl Control {
    /// Ends the program and all its descendants: it sends `SIGTERM` first, and `SIGKILL` a moment
    /// later. It does not wait; [`Exit::ended`] does.
    pub fn end(&self) {
        self.is_ending.send_replace(true);
        // It fails only if the keeper has exited already.
        let _ = shutdown(&*self.socket, Shutdown::Write);
    }

    /// Waits until [`Self::end`] is called.
    pub async fn ending(&self) {
        // This value holds the sender, so it is open.
        let _ = self.is_ending.subscribe().wait_for(|it| *it).await;
    }

    fn is_ending(&self) -> bool {
        *self.is_ending.borrow()
    }

    /// Resizes the program's terminal; returns false if it has none.
    pub fn resize(&self, size: TerminalSize) -> io::Result<bool> {
        let Some(terminal) = &self.terminal else {
            return Ok(false);
        };
        stdio::resize(terminal.get_ref().as_fd(), size)?;
        Ok(true)
    }
}

/// Reports of a program's start and end.
#[derive(Debug)]
pub struct Exit {
    control: Control,
    spawner: Spawner,
    keeper: Option<Child>,
    starting: Option<oneshot::Receiver<io::Result<Child>>>,
    /// Bytes received from the keeper and not yet parsed.
    unread: Vec<u8>,
}

impl Exit {
    /// Waits until the program runs, and returns its pid.
    pub async fn started(&mut self) -> Result<u32, StartError> {
        if let Some(starting) = self.starting.take() {
            match starting.await {
                Ok(keeper) => self.keeper = Some(keeper.map_err(StartError::Keeper)?),
                Err(_) if self.control.is_ending() => return Err(StartError::Ended),
                Err(_) => return Err(StartError::Keeper(io::ErrorKind::BrokenPipe.into())),
            }
        }
        match self.next().await {
            Some(KeeperReport::Started(pid)) => Ok(pid),
            Some(KeeperReport::NoFolder(errno)) => {
                Err(StartError::Folder(io::Error::from_raw_os_error(errno)))
            }
            Some(KeeperReport::NoProgram(errno)) => {
                Err(StartError::Program(io::Error::from_raw_os_error(errno)))
            }
            _ if self.control.is_ending() => Err(StartError::Ended),
            Some(
                KeeperReport::Exited(_)
                | KeeperReport::Survivors { .. }
                | KeeperReport::AllGone { .. },
            )
            | None => {
                let why = "it exited before its first report";
                Err(StartError::Keeper(io::Error::other(why)))
            }
        }
    }

    /// Waits until no process of the program is left.
    pub async fn ended(&mut self) -> ExitReport {
        let mut exit_report = ExitReport::default();
        while let Some(report) = self.next().await {
            if exit_report.apply(report) {
                break;
            }
        }
        exit_report
    }

    /// Returns the keeper's next report; `None` when it has exited.
    async fn next(&mut self) -> Option<KeeperReport> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return KeeperReport::read(std::str::from_utf8(&line[..end]).ok()?);
            }
            if self.unread.len() > REPORT_BYTES_MAX {
                return None;
            }
            let socket = &self.control.socket;
            socket.readable().await.ok()?;
            match socket.try_read_buf(&mut self.unread) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        self.control.end();
        if let Some(keeper) = self.keeper.take() {
            self.spawner.reap(keeper);
        }
    }
}
