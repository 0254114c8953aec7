//! The keeper: a small process of our own between the server and one command.
//!
//! The kernel hands orphans to the nearest subreaper, which is the keeper. So every process that a
//! command leaves behind (a daemon, a background job) becomes a child of it, and while it has a
//! child, a process of the command is left. It kills them all when the command has ended, and when
//! its socket to the server closes, which the kernel ensures when the server dies in any way.
//!
//! The kernel could also kill the keeper together with the server. It must not: the only process
//! that knows the descendants would be the first to die.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, ioctl_tiocsctty, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, setpriority_process, setsid, wait,
};

use super::descendants;
use super::wire::{self, ExitStatus, KeeperOrder, KeeperReport};
use crate::confinement::ignore_termination;
use crate::descriptors::set_cloexec;

/// The argument that makes a program a keeper.
pub const KEEP: &str = "keep";

/// Limit: time a command has to end after it was asked to; beyond it, the keeper kills it.
const TERM_GRACE: Duration = Duration::from_millis(200);

/// Interval between checks for remaining processes: at first, and at most.
const POLL_FIRST: Duration = Duration::from_millis(1);
const POLL_LAST: Duration = Duration::from_millis(50);

/// Limit: time in which no process of an ended command goes away or appears; beyond it, the
/// remaining processes are left, and the log names them.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3);

/// The highest priority of the kernel.
const PRIORITY: i32 = -20;

/// Killed processes that the report names.
const NAMES_MAX: usize = 16;

/// Events of the keeper.
enum KeeperEvent {
    /// The command has exited. Other processes may be left.
    Exited(ExitStatus),
    /// No process is left: there is no child any more, and orphans would be children.
    AllGone,
    /// The server asks to end the command, or has died.
    End,
}

/// Runs a keeper until no process of its command is left. Its stdin is the socket to the server.
pub fn keep() -> ExitCode {
    let Ok(socket) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let socket = UnixStream::from(socket);
    let Some((order, streams)) = wire::receive(&socket) else {
        return ExitCode::FAILURE;
    };
    set_cloexec();
    // Input of the server's terminal must not reach the keeper.
    let _ = setsid();
    if set_child_subreaper(Some(getpid())).is_err() {
        report(
            &socket,
            &KeeperReport::NoProgram(Errno::NOSYS.raw_os_error()),
        );
        return ExitCode::FAILURE;
    }
    // Before the command, which must not run unsupervised.
    let channels = watch(&socket).map_err(|error| KeeperReport::NoProgram(errno(&error)));
    let started =
        channels.and_then(|channels| Ok((channels, start(order, streams.map(Stdio::from))?)));
    match started {
        Ok((channels, child)) => Keeper::new(socket, channels, &child).run(),
        Err(problem) => {
            report(&socket, &problem);
            ExitCode::FAILURE
        }
    }
}

/// Channels of two threads: one listens to the server, the other waits for children once it gets
/// the pid of the command.
struct KeeperChannels {
    events: Receiver<KeeperEvent>,
    pid_sender: Sender<Pid>,
}

fn watch(socket: &UnixStream) -> io::Result<KeeperChannels> {
    let (sender, events) = channel();
    let (pid_sender, pid_receiver) = channel();
    let from_children = sender.clone();
    thread::Builder::new().spawn(move || {
        if let Ok(command) = pid_receiver.recv() {
            reap(command, &from_children);
        }
    })?;
    let socket = socket.try_clone()?;
    thread::Builder::new().spawn(move || listen(socket, &sender))?;
    Ok(KeeperChannels { events, pid_sender })
}

/// Sends a report. The server may have died; the keeper continues all the same.
fn report(mut socket: &UnixStream, report: &KeeperReport) {
    let _ = socket.write_all(report.write().as_bytes());
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

fn start(order: KeeperOrder, streams: [Stdio; 3]) -> Result<Child, KeeperReport> {
    let KeeperOrder {
        launch,
        has_terminal,
        is_confined,
    } = order;
    // Here and not in the child, so that a missing folder can be distinguished from a missing
    // program.
    std::env::set_current_dir(&launch.cwd)
        .map_err(|error| KeeperReport::NoFolder(errno(&error)))?;
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    let keeper = getpid();
    let settle = move || {
        // A separate session: its groups hold no other process, and no other terminal reaches it.
        setsid()?;
        if is_confined {
            ignore_termination();
        }
        if has_terminal {
            ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        // If the keeper is killed, at least the command dies with it.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(keeper) {
            return Err(Errno::SRCH.into());
        }
        Ok(())
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec only system calls may be made, and these are nothing else"
    )]
    // SAFETY: `settle` takes no lock, allocates nothing and makes system calls only.
    unsafe {
        command.pre_exec(settle);
    }
    command
        .spawn()
        .map_err(|error| KeeperReport::NoProgram(errno(&error)))
}

struct Keeper {
    socket: UnixStream,
    command: Pid,
    events: Receiver<KeeperEvent>,
    /// Killed processes, by pid.
    killed: BTreeMap<i32, String>,
    /// Processes that were still alive at the last check, by pid.
    alive: BTreeMap<i32, String>,
}

impl Keeper {
    fn new(
        socket: UnixStream,
        KeeperChannels { events, pid_sender }: KeeperChannels,
        child: &Child,
    ) -> Self {
        let command = Pid::from_child(child);
        report(&socket, &KeeperReport::Started(child.id()));
        let _ = pid_sender.send(command);
        Self {
            socket,
            command,
            events,
            killed: BTreeMap::new(),
            alive: BTreeMap::new(),
        }
    }

    fn run(mut self) -> ExitCode {
        match self.events.recv() {
            Ok(KeeperEvent::Exited(status)) => {
                report(&self.socket, &KeeperReport::Exited(status));
                self.clear(Instant::now() + POLL_FIRST);
            }
            Ok(KeeperEvent::End) => {
                // A stopped process cannot clean up.
                for signal in [Signal::TERM, Signal::CONT] {
                    let _ = kill_process_group(self.command, signal);
                }
                self.clear(Instant::now() + TERM_GRACE);
            }
            Ok(KeeperEvent::AllGone) | Err(_) => {}
        }
        self.finish()
    }

    /// Waits until no process is left. It kills those that are alive at `deadline`, or a moment
    /// after the command has exited, repeatedly: a process that is being forked in one round is
    /// found in the next. It gives up on processes that do not end, because they belong to another
    /// user by now or wait for a broken disk.
    fn clear(&mut self, mut deadline: Instant) {
        // A fork bomb has a thousand runnable processes; the keeper must come first where it may.
        let _ = setpriority_process(None, PRIORITY);
        let mut pause = POLL_FIRST;
        let mut last_change = deadline;
        loop {
            let mut timeout = deadline.saturating_duration_since(Instant::now());
            if timeout.is_zero() {
                let before = self.alive.len();
                let is_new = self.end_all();
                if is_new || self.alive.len() < before {
                    last_change = Instant::now();
                }
                if last_change.elapsed() > GIVE_UP_AFTER {
                    return;
                }
                if !is_new {
                    timeout = pause;
                    pause = (pause * 2).min(POLL_LAST);
                }
            }
            match self.events.recv_timeout(timeout) {
                Ok(KeeperEvent::Exited(status)) => {
                    report(&self.socket, &KeeperReport::Exited(status));
                    deadline = deadline.min(Instant::now() + POLL_FIRST);
                }
                Ok(KeeperEvent::AllGone) | Err(RecvTimeoutError::Disconnected) => {
                    self.alive.clear();
                    return;
                }
                Ok(KeeperEvent::End) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Kills all descendants. Returns true if one was not there the last time, so that the next
    /// check follows at once.
    fn end_all(&mut self) -> bool {
        let before = self.killed.len();
        self.alive.clear();
        for member in descendants::kill_all().into_iter().filter(|it| !it.is_dead) {
            self.alive.insert(member.pid, member.name.clone());
            self.killed.insert(member.pid, member.name);
        }
        self.killed.len() > before
    }

    fn finish(mut self) -> ExitCode {
        self.killed.retain(|pid, _| !self.alive.contains_key(pid));
        if !self.alive.is_empty() {
            let names = self.alive.into_values().take(NAMES_MAX).collect();
            report(&self.socket, &KeeperReport::Survivors { names });
        }
        let names = self.killed.values().take(NAMES_MAX).cloned().collect();
        let last_report = KeeperReport::AllGone {
            killed: self.killed.len(),
            names,
        };
        report(&self.socket, &last_report);
        ExitCode::SUCCESS
    }
}

/// Reaps every child, adopted orphans included, until there is none.
fn reap(command: Pid, sender: &Sender<KeeperEvent>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                let exit_status = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ExitStatus::Exit(code),
                    (None, Some(signal)) => ExitStatus::Signal(signal),
                    (None, None) => continue,
                };
                let _ = sender.send(KeeperEvent::Exited(exit_status));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(KeeperEvent::AllGone);
}

/// Waits until the server closes the socket. The server sends nothing more, so any byte means the
/// end too.
fn listen(mut socket: UnixStream, sender: &Sender<KeeperEvent>) {
    let _ = socket.read(&mut [0]);
    let _ = sender.send(KeeperEvent::End);
}
