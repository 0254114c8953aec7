//! The thread that starts keepers, and reaps them.
//!
//! It is one thread that never ends before its launcher: the kernel ties the parent-death signal of
//! a child to the thread that started the child. Starting a process also blocks for a moment, and a
//! thread of the runtime must not block.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::keeper::KEEP;

/// Interval between checks whether an ending keeper has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Name of a keeper in lists of processes.
const NAME: &str = "raddle-keeper";

/// The command that starts a keeper.
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    /// A program that calls [`keep`](super::keep) when it is started with these arguments.
    pub program: PathBuf,
    /// The arguments that make it a keeper.
    pub args: Vec<OsString>,
    /// Its environment, which is not that of the command.
    pub env: Vec<(OsString, OsString)>,
}

impl KeeperCommand {
    /// Returns the running program with the argument [`KEEP`]. The path works even when another
    /// version has replaced it on the disk.
    pub fn own() -> Self {
        Self::of("/proc/self/exe".into())
    }

    /// Returns a program whose `main` calls [`take_over`](crate::take_over) first.
    pub(crate) fn of(program: PathBuf) -> Self {
        Self {
            program,
            args: vec![KEEP.into()],
            env: Vec::new(),
        }
    }

    /// Starts a keeper with this socket.
    pub(super) fn start(&self, socket: OwnedFd) -> io::Result<Child> {
        Command::new(&self.program)
            .arg0(NAME)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().cloned())
            .current_dir("/")
            .stdin(socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}

enum Job {
    Start {
        socket: OwnedFd,
        started: oneshot::Sender<io::Result<Child>>,
    },
    Reap(Child),
}

/// Handle of the thread, which starts on first use. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Spawner {
    keeper: KeeperCommand,
    jobs: Arc<Mutex<Option<Sender<Job>>>>,
}

impl Spawner {
    pub(super) fn new(keeper: KeeperCommand) -> Self {
        Self {
            keeper,
            jobs: Arc::default(),
        }
    }

    /// Queues the start of a keeper with this socket.
    pub(super) fn start(
        &self,
        socket: OwnedFd,
        started: oneshot::Sender<io::Result<Child>>,
    ) -> io::Result<()> {
        let _ = self.jobs()?.send(Job::Start { socket, started });
        Ok(())
    }

    /// Queues a keeper to be reaped when it has exited.
    pub(super) fn reap(&self, keeper: Child) {
        if let Ok(jobs) = self.jobs() {
            let _ = jobs.send(Job::Reap(keeper));
        }
    }

    fn jobs(&self) -> io::Result<Sender<Job>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &*jobs {
            return Ok(jobs.clone());
        }
        let (sender, queue) = channel();
        let keeper = self.keeper.clone();
        thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || run(&keeper, &queue))?;
        *jobs = Some(sender.clone());
        Ok(sender)
    }
}

fn run(keeper: &KeeperCommand, queue: &Receiver<Job>) {
    let mut ending: Vec<Child> = Vec::new();
    loop {
        let job = if ending.is_empty() {
            queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            queue.recv_timeout(POLL_INTERVAL)
        };
        match job {
            Ok(Job::Start { socket, started }) => {
                // The caller may be gone. Then the socket is closed, and the keeper exits.
                if let Err(Ok(child)) = started.send(keeper.start(socket)) {
                    ending.push(child);
                }
            }
            Ok(Job::Reap(child)) => ending.push(child),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if ending.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL_INTERVAL),
        }
        ending.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
