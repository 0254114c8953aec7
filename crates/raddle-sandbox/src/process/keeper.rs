//! The keeper: a small process of our own between the server and one command.
//!
//! The system hands orphans to the nearest ancestor that asks for them, and the keeper does. So whatever
//! a command leaves behind (a daemon, a job in the background) comes back to it, and as long as it has a
//! child, something is left. It ends all of that when the command is over, and when its socket to the
//! server closes, which the kernel sees to when the server dies in whatever way.
//!
//! The system could also be asked to kill the keeper with the server. It must not be: the one process
//! that knows what is to be ended would be the first to go.

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
use crate::confinement::ignore_endings;
use crate::descriptors::set_cloexec;

/// The word on the command line that makes a program a keeper.
pub const KEEP: &str = "keep";

/// How long a command that is told to end may take to tidy up: git, say, removes its lock files.
const GRACE: Duration = Duration::from_millis(200);

/// How soon it is looked again whether something is left: at first, and at most.
const POLL_FIRST: Duration = Duration::from_millis(1);
const POLL_LAST: Duration = Duration::from_millis(50);

/// How long nobody may have gone, and nobody come, before those that are there are left to themselves.
const GIVE_UP: Duration = Duration::from_secs(3);

/// The highest there is.
const PRIORITY: i32 = -20;

/// How many of those that had to be ended are named.
const NAMES_MAX: usize = 16;

/// What the keeper hears of.
enum KeeperEvent {
    /// The command is over. Others may be left.
    Exited(ExitStatus),
    /// Nothing is left: there is no child any more, and orphans would be children.
    AllGone,
    /// The server wants the end, or is gone.
    End,
}

/// Is a keeper until nothing is left of its command. Its stdin is the socket to the server.
pub fn keep() -> ExitCode {
    let Ok(socket) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let socket = UnixStream::from(socket);
    let Some((order, streams)) = wire::receive(&socket) else {
        return ExitCode::FAILURE;
    };
    set_cloexec();
    // What is typed into the server's terminal is not for us.
    let _ = setsid();
    if set_child_subreaper(Some(getpid())).is_err() {
        report(
            &socket,
            &KeeperReport::NoProgram(Errno::NOSYS.raw_os_error()),
        );
        return ExitCode::FAILURE;
    }
    // Before the command, which must not run if nobody can watch it.
    let watched = watch(&socket).map_err(|error| KeeperReport::NoProgram(errno(&error)));
    let started =
        watched.and_then(|watched| Ok((watched, start(order, streams.map(Stdio::from))?)));
    match started {
        Ok((watched, child)) => Keeper::new(socket, watched, &child).run(),
        Err(problem) => {
            report(&socket, &problem);
            ExitCode::FAILURE
        }
    }
}

/// What two threads hear: one listens to the server, one to the children from when it is told of the first.
struct KeeperChannels {
    events: Receiver<KeeperEvent>,
    born: Sender<Pid>,
}

fn watch(socket: &UnixStream) -> io::Result<KeeperChannels> {
    let (tell, news) = channel();
    let (born, birth) = channel();
    let from_children = tell.clone();
    thread::Builder::new().spawn(move || {
        if let Ok(command) = birth.recv() {
            reap(command, &from_children);
        }
    })?;
    let socket = socket.try_clone()?;
    thread::Builder::new().spawn(move || listen(socket, &tell))?;
    Ok(KeeperChannels { events: news, born })
}

/// Nobody may be reading; that is no reason to stop.
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
        is_confined: is_fence,
    } = order;
    // Here and not in the child, so that a folder that is missing is told from a program that is.
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
        // A session of its own: its groups have nobody else in them, and no other terminal reaches it.
        setsid()?;
        if is_fence {
            ignore_endings();
        }
        if has_terminal {
            ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        // Should the keeper be killed, the command at least goes with it.
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
    /// Those that had to be ended, by pid.
    ended: BTreeMap<i32, String>,
    /// Who still lived at the last look, by pid.
    alive: BTreeMap<i32, String>,
}

impl Keeper {
    fn new(
        socket: UnixStream,
        KeeperChannels { events, born }: KeeperChannels,
        child: &Child,
    ) -> Self {
        let command = Pid::from_child(child);
        report(&socket, &KeeperReport::Started(child.id()));
        let _ = born.send(command);
        Self {
            socket,
            command,
            events,
            ended: BTreeMap::new(),
            alive: BTreeMap::new(),
        }
    }

    fn run(mut self) -> ExitCode {
        match self.events.recv() {
            Ok(KeeperEvent::Exited(over)) => {
                report(&self.socket, &KeeperReport::Exited(over));
                self.clear(Instant::now() + POLL_FIRST);
            }
            Ok(KeeperEvent::End) => {
                // A stopped one cannot tidy up.
                for signal in [Signal::TERM, Signal::CONT] {
                    let _ = kill_process_group(self.command, signal);
                }
                self.clear(Instant::now() + GRACE);
            }
            Ok(KeeperEvent::AllGone) | Err(_) => {}
        }
        self.leave()
    }

    /// Waits until nothing is left. Whoever still lives at `deadline`, or a moment after the command
    /// itself is over, is ended, again and again: what is being born in one round is there in the next. Those that
    /// do not go, because they are another user's by now or wait for a broken disk, are left in the end.
    fn clear(&mut self, mut deadline: Instant) {
        // A bomb has a thousand processes that want to run; this one must come first where it may.
        let _ = setpriority_process(None, PRIORITY);
        let mut pause = POLL_FIRST;
        let mut moved = deadline;
        loop {
            let mut patience = deadline.saturating_duration_since(Instant::now());
            if patience.is_zero() {
                let before = self.alive.len();
                let is_new = self.end_all();
                if is_new || self.alive.len() < before {
                    moved = Instant::now();
                }
                if moved.elapsed() > GIVE_UP {
                    return;
                }
                if !is_new {
                    patience = pause;
                    pause = (pause * 2).min(POLL_LAST);
                }
            }
            match self.events.recv_timeout(patience) {
                Ok(KeeperEvent::Exited(over)) => {
                    report(&self.socket, &KeeperReport::Exited(over));
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

    /// Ends whoever is there. If one was not there the last time, it is time to look again at once.
    fn end_all(&mut self) -> bool {
        let before = self.ended.len();
        self.alive.clear();
        for member in descendants::end().into_iter().filter(|it| !it.is_dead) {
            self.alive.insert(member.pid, member.name.clone());
            self.ended.insert(member.pid, member.name);
        }
        self.ended.len() > before
    }

    fn leave(mut self) -> ExitCode {
        self.ended.retain(|pid, _| !self.alive.contains_key(pid));
        if !self.alive.is_empty() {
            let names = self.alive.into_values().take(NAMES_MAX).collect();
            report(&self.socket, &KeeperReport::Survivors { names });
        }
        let names = self.ended.values().take(NAMES_MAX).cloned().collect();
        let alone = KeeperReport::AllGone {
            ended: self.ended.len(),
            names,
        };
        report(&self.socket, &alone);
        ExitCode::SUCCESS
    }
}

/// Takes every child that dies, also those that others left to us, until there is none.
fn reap(command: Pid, tell: &Sender<KeeperEvent>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                let over = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ExitStatus::Exit(code),
                    (None, Some(signal)) => ExitStatus::Signal(signal),
                    (None, None) => continue,
                };
                let _ = tell.send(KeeperEvent::Exited(over));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = tell.send(KeeperEvent::AllGone);
}

/// Waits for the end of what the server says. It says nothing more, so whatever comes is the end.
fn listen(mut socket: UnixStream, tell: &Sender<KeeperEvent>) {
    let _ = socket.read(&mut [0]);
    let _ = tell.send(KeeperEvent::End);
}
