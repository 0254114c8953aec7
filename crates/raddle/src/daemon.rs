//! `raddle daemon`: the background server of a home.

mod livez;
mod lock;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use raddle_config::Override;
use raddle_console::{Printer, sanitize};
use raddle_rpc::ListenAddress;
use raddle_sandbox::set_cloexec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

use self::lock::{DaemonInfo, DaemonLock, RunningDaemon, StopLock, look};
use crate::app_server;
use crate::cli::{Daemon, DaemonCommand, DaemonStart, DaemonStatus, DaemonStop, Serve};
use crate::home::Home;

/// The exit status of `status` if no daemon runs, as service programs use it.
const NONE_RUNS: u8 = 3;

/// The exit status of `status` if a daemon runs but does not serve.
const DOES_NOT_SERVE: u8 = 4;

/// The interval between polls of another daemon's state.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a stopped daemon may take to acknowledge the signal, before another one may be sent.
const STOP_ACK_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(config: Vec<Override>, args: Daemon) -> Result<ExitCode> {
    let home = Home::find()?;
    match args.command {
        None => serve(&home, config, args.serve),
        Some(DaemonCommand::Detached(it)) => detached(&home, config, it.serve),
        Some(DaemonCommand::Start(it)) => start(&home, &it),
        Some(DaemonCommand::Stop(it)) => stop(&home, &it),
        Some(DaemonCommand::Status(it)) => status(&home, &it),
    }
}

/// Serves in the foreground.
fn serve(home: &Home, config: Vec<Override>, args: Serve) -> Result<ExitCode> {
    let args = with_listen_address(args)?;
    let Some(mut lock) = DaemonLock::take(home, false)? else {
        let running = look(home)?.map(|it| it.to_string());
        bail!(
            "a daemon of this home runs already{}; `raddle daemon stop` ends it",
            running.unwrap_or_default()
        );
    };
    app_server::run(config, &args, &mut lock)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves as the process that [`start`] spawned and waits for.
fn detached(home: &Home, config: Vec<Override>, args: Serve) -> Result<ExitCode> {
    // From here on no signal of the terminal reaches it.
    rustix::process::setsid().context("cannot detach from the terminal")?;
    let args = with_listen_address(args)?;
    let Some(mut lock) = DaemonLock::take(home, true)? else {
        // The parent looks for the daemon that won.
        return Ok(ExitCode::FAILURE);
    };
    app_server::run(config, &args, &mut lock)?;
    Ok(ExitCode::SUCCESS)
}

/// Validates the listen addresses and adds the default one.
fn with_listen_address(mut args: Serve) -> Result<Serve> {
    let has_no_address =
        |it: &ListenAddress| matches!(it, ListenAddress::Stdio | ListenAddress::Off);
    if args.stdio || args.listen.iter().any(has_no_address) {
        bail!("a daemon needs an address; name one with --listen unix:// or --listen ws://IP:PORT");
    }
    if args.listen.is_empty() {
        args.listen.push(ListenAddress::Unix(None));
    }
    Ok(args)
}

fn start(home: &Home, args: &DaemonStart) -> Result<ExitCode> {
    with_listen_address(args.serve.clone())?;
    let end = Instant::now() + Duration::from_secs(args.timeout);
    loop {
        match look(home)? {
            Some(RunningDaemon {
                info: Some(it),
                pid,
            }) if !it.ending => {
                return report(args.json, "running", pid, Some(&it), "runs already");
            }
            Some(RunningDaemon {
                info: Some(_),
                pid: Some(pid),
            }) => {
                if !wait(pid, end)? {
                    bail!(
                        "the daemon (pid {pid}) has not ended yet; try again, or `raddle daemon stop --now`"
                    );
                }
            }
            // Another daemon is starting or exiting.
            Some(_) if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            Some(it) => bail!(
                "another daemon{it} was started and is not ready; `raddle daemon stop --now` ends it"
            ),
            None => {
                if let Some((pid, info)) = launch(home, end)? {
                    return report(args.json, "running", Some(pid), Some(&info), "runs");
                }
            }
        }
    }
}

/// Spawns the daemon and waits until it is ready. Returns `None` if another one won the race.
fn launch(home: &Home, end: Instant) -> Result<Option<(Pid, DaemonInfo)>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    // A process that waits for the end of a pipe inherited by us must not wait for the daemon.
    set_cloexec();
    let mut child = Command::new(program)
        .args(detached_arguments(std::env::args_os().skip(1)))
        // The daemon notifies this process; only this process notifies the service manager.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the daemon")?;
    let pid = Pid::from_child(&child);
    let line = child.stdout.take().and_then(|it| first_line(it, end));
    match line.map(|it| serde_json::from_str::<DaemonInfo>(&it)) {
        Some(Ok(info)) => Ok(Some((pid, info))),
        _ => failed(home, child, end),
    }
}

/// Returns the same arguments, with `start` replaced by `detached`.
fn detached_arguments(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_after = false;
    let mut words: Vec<OsString> = words.collect();
    for word in &mut words {
        if is_after && *word == "start" {
            *word = "detached".into();
            break;
        }
        is_after |= *word == "daemon";
    }
    words
}

/// Returns the first line, or `None` at the timeout. The reading thread ends when the pipe closes.
fn first_line(stdout: ChildStdout, end: Instant) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(stdout)
            .read_line(&mut line)
            .is_ok_and(|it| it > 0)
        {
            let _ = sender.send(line);
        }
    });
    let timeout = end.saturating_duration_since(Instant::now());
    receiver.recv_timeout(timeout).ok()
}

/// The daemon exited, or timed out and is killed: a half-started daemon is worse than none.
fn failed(home: &Home, mut child: Child, end: Instant) -> Result<Option<(Pid, DaemonInfo)>> {
    let is_late = Instant::now() >= end;
    if is_late {
        child
            .kill()
            .context("cannot end the daemon that is not ready")?;
    }
    let status = child.wait().context("cannot wait for the daemon")?;
    if is_late {
        bail!("the daemon was not ready in time and was killed; allow more with --timeout SECONDS");
    }
    if look(home)?.is_some() {
        return Ok(None);
    }
    bail!("the daemon did not start ({status}); its output is above")
}

fn stop(home: &Home, args: &DaemonStop) -> Result<ExitCode> {
    let Some(daemon) = look(home)? else {
        return report(args.json, "stopped", None, None, "does not run");
    };
    let Some(pid) = daemon.pid else {
        bail!(
            "the daemon runs, but its process is not visible: it is in another container, or has read {} itself; \
             end that process where it runs",
            home.daemon().join("lock").display()
        );
    };
    let process = pidfd_open(pid, PidfdFlags::empty());
    // If the pid still belongs to the daemon, the pidfd refers to it. If not, the daemon has ended.
    let is_still = look(home)?.is_some_and(|it| it.pid == Some(pid));
    if let (Ok(process), true) = (process, is_still) {
        if args.now {
            // Also to a daemon that already received SIGTERM.
            send(&process, Signal::KILL).context("cannot end the daemon")?;
        } else {
            terminate(home, pid, &process)?;
        }
        let end = Instant::now() + Duration::from_secs(args.timeout);
        if !wait_for(&process, end)? {
            bail!(
                "the daemon (pid {pid}) has not finished its work after {} s; wait longer with --timeout SECONDS, \
                 or end it with `raddle daemon stop --now`",
                args.timeout
            );
        }
    }
    report(args.json, "stopped", Some(pid), None, "has ended")
}

/// Sends SIGTERM, unless one was sent: a second signal would cut off the work in progress.
/// Concurrent `stop` processes take the lock in turn, until the daemon has acknowledged the signal.
fn terminate(home: &Home, pid: Pid, process: &OwnedFd) -> Result<()> {
    let _turn = StopLock::take(home)?;
    let is_ending = || -> Result<bool> {
        let daemon = look(home)?.filter(|it| it.pid == Some(pid));
        Ok(daemon.is_none_or(|it| it.info.is_some_and(|it| it.ending)))
    };
    if is_ending()? {
        return Ok(());
    }
    send(process, Signal::TERM).context("cannot stop the daemon")?;
    let end = Instant::now() + STOP_ACK_TIMEOUT;
    while Instant::now() < end && !is_ending()? {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Sends a signal. A process that has already ended counts as success.
fn send(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    match pidfd_send_signal(process, signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent,
    }
}

fn status(home: &Home, args: &DaemonStatus) -> Result<ExitCode> {
    let Some(daemon) = look(home)? else {
        report(args.json, "stopped", None, None, "does not run")?;
        return Ok(NONE_RUNS.into());
    };
    let (state, text) = state_of(&daemon);
    report(args.json, state, daemon.pid, daemon.info.as_ref(), text)?;
    Ok(match state {
        "running" => ExitCode::SUCCESS,
        _ => DOES_NOT_SERVE.into(),
    })
}

/// Summarises the daemon of a home in a line, and whether it is healthy. `None` if none runs.
pub(crate) fn summary(home: &Home) -> Result<Option<(String, bool)>> {
    let Some(daemon) = look(home)? else {
        return Ok(None);
    };
    let (state, _) = state_of(&daemon);
    let listen = daemon.info.iter().flat_map(|it| it.listen.iter());
    let listen: String = listen.map(|it| format!(", {it}")).collect();
    let is_well = state != "stuck";
    Ok(Some((
        format!("the daemon{daemon} is {state}{listen}"),
        is_well,
    )))
}

/// The state of a running daemon, as a name for programs and as text for users.
fn state_of(daemon: &RunningDaemon) -> (&'static str, &'static str) {
    let is_well = |it: &String| livez::is_well(it).unwrap_or(false);
    match &daemon.info {
        None => ("starting", "starts"),
        Some(info) if info.ending => ("ending", "ends"),
        Some(info) if info.listen.iter().all(is_well) => ("running", "runs"),
        Some(_) => (
            "stuck",
            "runs, and does not answer; `raddle daemon stop --now` ends it",
        ),
    }
}

/// Waits for a process to end. Returns false at the timeout.
fn wait(pid: Pid, end: Instant) -> Result<bool> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => wait_for(&process, end),
        Err(Errno::SRCH) => Ok(true),
        Err(error) => Err(error).context("cannot watch the daemon"),
    }
}

fn wait_for(process: &impl std::os::fd::AsFd, end: Instant) -> Result<bool> {
    loop {
        let timeout = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(timeout).context("that is too long to wait")?;
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the daemon"),
        }
    }
}

fn report(
    is_json: bool,
    state: &str,
    pid: Option<Pid>,
    info: Option<&DaemonInfo>,
    text: &str,
) -> Result<ExitCode> {
    let mut printer = Printer::new();
    if is_json {
        printer.line(&as_json(state, pid, info).to_string())?;
    } else {
        let pid = pid.map(|it| format!(" (pid {it})")).unwrap_or_default();
        printer.line(&format!("the daemon{pid} {text}"))?;
        let info = info.into_iter();
        for line in info.flat_map(lines) {
            printer.line(&sanitize(&line))?;
        }
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn lines(info: &DaemonInfo) -> Vec<String> {
    let listen = info.listen.iter().map(|it| format!("  listens on {it}"));
    let log = info
        .log
        .iter()
        .map(|it| format!("  logs to {}", it.display()));
    let version = format!("  has version {}", info.version);
    listen.chain(log).chain([version]).collect()
}

fn as_json(state: &str, pid: Option<Pid>, info: Option<&DaemonInfo>) -> Value {
    json!({
        "state": state,
        "pid": pid.map(Pid::as_raw_pid),
        "listen": info.map(|it| &it.listen),
        "log": info.and_then(|it| it.log.as_ref()),
        "version": info.map(|it| &it.version),
    })
}
