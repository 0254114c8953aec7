//! Running programs so that nothing of them is left behind.
//!
//! ```text
//! server ── spawner thread ── keeper ── command ── its children …
//! ```
//!
//! The server speaks to a keeper over a socket and to the command over pipes or a terminal. Whatever
//! ends the socket (an order, a dropped [`Life`], the server's death) ends the command with all its
//! descendants. `ARCHITECTURE.md` says more under *Processes*.

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

/// The longest line that a keeper tells.
const REPORT_BYTES_MAX: usize = 4 << 10;

/// Starts programs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Launcher {
    spawner: Spawner,
}

/// A program that was started, in parts that go separate ways.
#[derive(Debug)]
pub struct ChildProcess {
    /// What it is given to read, if it is given anything.
    pub input: Option<Input>,
    /// What it writes; with a terminal or one pipe, all of it.
    pub stdout: Output,
    /// What it writes to stderr, unless that goes where stdout goes.
    pub stderr: Option<Output>,
    /// Ends it, or changes its terminal's size.
    pub control: Control,
    /// Tells how it goes. Dropping it ends the program.
    pub exit: Exit,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its folder cannot be entered.
    #[error("the folder cannot be entered: {0}")]
    Folder(io::Error),
    /// It is not there, or may not be run.
    #[error("the program cannot be started: {0}")]
    Program(io::Error),
    /// The keeper could not be started, or ended before it said anything.
    #[error("the keeper of the program cannot be started: {0}")]
    Keeper(io::Error),
    /// It was ended before it ran.
    #[error("the program was ended before it ran")]
    Ended,
}

/// How a program ended, and what was left of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitReport {
    /// How the program itself ended; nothing if its keeper was killed.
    pub status: Option<ExitStatus>,
    /// How many processes had to be ended, the program itself among them if it did not end when told.
    pub ended: usize,
    /// The names of the first of them.
    pub names: Vec<String>,
    /// The names of the first of those that could not be ended: another user's by now, say.
    pub survivors: Vec<String>,
}

impl ExitReport {
    /// Takes what a keeper tells; true if it was the last.
    fn apply(&mut self, report: KeeperReport) -> bool {
        match report {
            KeeperReport::Exited(over) => self.status = Some(over),
            KeeperReport::Survivors { names } => self.survivors = names,
            KeeperReport::AllGone { ended, names } => {
                self.ended = ended;
                self.names = names;
                return true;
            }
            KeeperReport::Started(_) | KeeperReport::NoFolder(_) | KeeperReport::NoProgram(_) => {}
        }
        false
    }
}

impl Launcher {
    /// An engine whose keepers are started like this.
    pub fn new(keeper: KeeperCommand) -> Self {
        Self {
            spawner: Spawner::new(keeper),
        }
    }

    /// Starts a program. This does not wait: whether it could be started is told by [`Life::started`].
    /// Until then the other parts can be used already.
    pub fn start(&self, launch: Launch, stdio: Stdio) -> io::Result<ChildProcess> {
        let (process, start) = self.open(stdio)?;
        start.with(launch)?;
        Ok(process)
    }

    /// Runs a program that is given nothing to read, and returns what it wrote to stdout: all of it, or the first
    /// bytes and at least one more than `bytes_max`. What it writes to stderr may be a secret, and is not looked at.
    /// Whoever stops waiting ends it.
    pub async fn output(&self, launch: Launch, bytes_max: usize) -> Result<Vec<u8>, String> {
        let started = self.start(launch, Stdio::Pipes { input: false });
        let ChildProcess {
            stdout,
            stderr,
            exit: mut life,
            ..
        } = started.map_err(|error| error.to_string())?;
        life.started().await.map_err(|error| error.to_string())?;
        let drained = async {
            match &stderr {
                Some(stderr) => stderr.read_within(0).await.map(drop),
                None => Ok(()),
            }
        };
        let (written, _, ended) =
            tokio::join!(stdout.read_within(bytes_max), drained, life.ended());
        match ended.status {
            Some(ExitStatus::Exit(0)) => written.map_err(|error| error.to_string()),
            Some(over) => Err(format!("it ended with {}", over.code())),
            None => Err("it was killed".to_owned()),
        }
    }

    /// The parts of a program of which it is not known yet how it will be started. They can be used already,
    /// also to end it.
    pub fn open(&self, stdio: Stdio) -> io::Result<(ChildProcess, PendingStart)> {
        let ends = stdio.open()?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(ours)?);
        let (started, starting) = oneshot::channel();
        let leash = Control {
            socket: socket.clone(),
            is_ending: Arc::default(),
            terminal: ends.terminal,
        };
        let process = ChildProcess {
            input: ends.input,
            stdout: ends.stdout,
            stderr: ends.stderr,
            exit: Exit {
                control: leash.clone(),
                spawner: self.spawner.clone(),
                keeper: None,
                starting: Some(starting),
                unread: Vec::new(),
            },
            control: leash,
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
    /// Starts this. It does not wait either.
    pub fn with(self, launch: Launch) -> io::Result<()> {
        self.order(launch, false)
    }

    /// The same for a command inside its fence.
    pub fn confined(self, fenced: &ConfinedLaunch) -> io::Result<()> {
        self.order(fenced.launch.clone(), fenced.is_confined())
    }

    fn order(self, launch: Launch, is_fence: bool) -> io::Result<()> {
        let order = KeeperOrder {
            launch,
            has_terminal: self.has_terminal,
            is_confined: is_fence,
        };
        let order = order.write();
        let socket = self.socket;
        let streams = self.streams.each_ref().map(AsFd::as_fd);
        wire::send_head(socket.as_fd(), order.len(), &streams)?;
        // Most orders go at once, and then nothing that comes later cuts them short.
        let sent = rustix::io::write(&*socket, &order).unwrap_or(0);
        if sent < order.len() {
            tokio::spawn(send(socket, order, sent));
        }
        self.spawner.start(self.theirs.into(), self.started)
    }
}

/// Sends what is left of an order. A keeper that is gone takes nothing; whoever waits for its reports
/// notices.
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

/// A hold on a program. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    socket: Arc<UnixStream>,
    is_ending: Arc<watch::Sender<bool>>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl Control {
    /// Ends the program and all its descendants: it is asked first, and killed a moment later. This does
    /// not wait; [`Life::ended`] does.
    pub fn end(&self) {
        self.is_ending.send_replace(true);
        // It fails only if the keeper has ended already.
        let _ = shutdown(&*self.socket, Shutdown::Write);
    }

    /// Waits until someone ends it.
    pub async fn ending(&self) {
        // The sender is ours, so there is one.
        let _ = self.is_ending.subscribe().wait_for(|it| *it).await;
    }

    fn is_ending(&self) -> bool {
        *self.is_ending.borrow()
    }

    /// Changes the size of the program's terminal; false if it has none.
    pub fn resize(&self, size: TerminalSize) -> io::Result<bool> {
        let Some(terminal) = &self.terminal else {
            return Ok(false);
        };
        stdio::resize(terminal.get_ref().as_fd(), size)?;
        Ok(true)
    }
}

/// How a program goes.
#[derive(Debug)]
pub struct Exit {
    control: Control,
    spawner: Spawner,
    keeper: Option<Child>,
    starting: Option<oneshot::Receiver<io::Result<Child>>>,
    /// Heard from the keeper and not yet read.
    unread: Vec<u8>,
}

impl Exit {
    /// Waits until the program runs, and gives its pid.
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
                let why = "it ended before it said anything";
                Err(StartError::Keeper(io::Error::other(why)))
            }
        }
    }

    /// Waits until nothing of the program is left.
    pub async fn ended(&mut self) -> ExitReport {
        let mut found = ExitReport::default();
        while let Some(report) = self.next().await {
            if found.apply(report) {
                break;
            }
        }
        found
    }

    /// The keeper's next report; nothing when it has ended.
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
            self.spawner.take(keeper);
        }
    }
}
