//! The thread that starts keepers, and takes them when they have ended.
//!
//! It is one thread that never ends before its engine: what the system ties to the life of a child's
//! parent, it ties to the thread that started the child. To start a process also blocks for a moment,
//! and a thread of the runtime should not.

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

/// How often it is looked whether a keeper has ended that is about to.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What a keeper is called in lists of processes.
const NAME: &str = "raddle-keeper";

/// How a keeper is started.
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    /// A program that calls [`keep`](super::keep) when it is started so.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment, which is not that of the command.
    pub env: Vec<(OsString, OsString)>,
}

impl KeeperCommand {
    /// The program that runs now, with the word [`KEEP`]. It is named so that it is found also when
    /// another version has taken its place on the disk.
    pub fn own() -> Self {
        Self::of("/proc/self/exe".into())
    }

    /// A program whose `main` calls [`take_over`](crate::take_over) first.
    pub(crate) fn of(program: PathBuf) -> Self {
        Self {
            program,
            args: vec![KEEP.into()],
            env: Vec::new(),
        }
    }

    /// Starts one that is spoken to over this socket.
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
    Take(Child),
}

/// The way to the thread, which is started when it is first needed. Cheap to clone.
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

    /// Has a keeper started that is spoken to over this socket.
    pub(super) fn start(
        &self,
        socket: OwnedFd,
        started: oneshot::Sender<io::Result<Child>>,
    ) -> io::Result<()> {
        let _ = self.jobs()?.send(Job::Start { socket, started });
        Ok(())
    }

    /// Has a keeper taken when it has ended.
    pub(super) fn take(&self, keeper: Child) {
        if let Ok(jobs) = self.jobs() {
            let _ = jobs.send(Job::Take(keeper));
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
                // Who asked may be gone. The socket is closed then, and the keeper leaves.
                if let Err(Ok(child)) = started.send(keeper.start(socket)) {
                    ending.push(child);
                }
            }
            Ok(Job::Take(child)) => ending.push(child),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if ending.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL_INTERVAL),
        }
        ending.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
