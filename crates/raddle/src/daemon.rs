//! `raddle daemon`: the server of a home that nobody has to keep a terminal open for.

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
use raddle_rpc::ListenAddress;
use raddle_sandbox::set_cloexec;
use raddle_server::Override;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

use self::lock::{DaemonInfo, DaemonLock, RunningDaemon, StopLock, look};
use crate::app_server;
use crate::cli::{Daemon, DaemonCommand, DaemonStart, DaemonStatus, DaemonStop, Serve};
use crate::home::Home;
use crate::print::{Printer, sanitize};

/// The exit status of `status` where none runs, as that of other service programs.
const NONE_RUNS: u8 = 3;

/// The exit status of `status` where one runs that does not serve.
const DOES_NOT_SERVE: u8 = 4;

/// How long is waited before it is looked again how far another start is.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long one that was told to end may take to say so, before another one may tell it.
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
    let args = doors(args)?;
    let Some(mut post) = DaemonLock::take(home, false)? else {
        let place = look(home)?.map(|it| it.to_string());
        bail!(
            "a daemon of this home runs already{}; `raddle daemon stop` ends it",
            place.unwrap_or_default()
        );
    };
    app_server::run(config, &args, &mut post)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves as the process that [`start`] made and waits for.
fn detached(home: &Home, config: Vec<Override>, args: Serve) -> Result<ExitCode> {
    // No signal of the terminal reaches it from here on.
    rustix::process::setsid().context("cannot leave the terminal")?;
    let args = doors(args)?;
    let Some(mut post) = DaemonLock::take(home, true)? else {
        // Whoever started it looks who was faster.
        return Ok(ExitCode::FAILURE);
    };
    app_server::run(config, &args, &mut post)?;
    Ok(ExitCode::SUCCESS)
}

/// Where a daemon listens.
fn doors(mut args: Serve) -> Result<Serve> {
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
    doors(args.serve.clone())?;
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
            // Another one is about to be there, or to be gone.
            Some(_) if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            Some(it) => bail!(
                "another daemon{it} was started and is not ready; `raddle daemon stop --now` ends it"
            ),
            None => {
                if let Some((pid, said)) = launch(home, end)? {
                    return report(args.json, "running", Some(pid), Some(&said), "runs");
                }
            }
        }
    }
}

/// Makes the process, and waits until it is ready. Nothing if another one was faster.
fn launch(home: &Home, end: Instant) -> Result<Option<(Pid, DaemonInfo)>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    // Whoever waits for the end of a pipe that we were given must not wait for the daemon's.
    set_cloexec();
    let mut child = Command::new(program)
        .args(words(std::env::args_os().skip(1)))
        // It is told about us, not about whom we are told to.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the daemon")?;
    let pid = Pid::from_child(&child);
    let said = child.stdout.take().and_then(|it| first_line(it, end));
    match said.map(|it| serde_json::from_str::<DaemonInfo>(&it)) {
        Some(Ok(said)) => Ok(Some((pid, said))),
        _ => failed(home, child, end),
    }
}

/// The same words, for the process that detaches.
fn words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
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

/// The first line, if one comes in time. Nothing is left waiting for it once the other end is closed.
fn first_line(stdout: ChildStdout, end: Instant) -> Option<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(stdout)
            .read_line(&mut line)
            .is_ok_and(|it| it > 0)
        {
            let _ = tell.send(line);
        }
    });
    let left = end.saturating_duration_since(Instant::now());
    told.recv_timeout(left).ok()
}

/// The process has ended, or has to: half a daemon is worse than none.
fn failed(home: &Home, mut child: Child, end: Instant) -> Result<Option<(Pid, DaemonInfo)>> {
    let is_late = Instant::now() >= end;
    if is_late {
        child
            .kill()
            .context("cannot end the daemon that is not ready")?;
    }
    let status = child.wait().context("cannot wait for the daemon")?;
    if is_late {
        bail!(
            "the daemon was not ready in time and was ended; allow it more with --timeout SECONDS"
        );
    }
    if look(home)?.is_some() {
        return Ok(None);
    }
    bail!("the daemon did not start ({status}); what it said is above")
}

fn stop(home: &Home, args: &DaemonStop) -> Result<ExitCode> {
    let Some(found) = look(home)? else {
        return report(args.json, "stopped", None, None, "does not run");
    };
    let Some(pid) = found.pid else {
        bail!(
            "the daemon runs, but which process it is cannot be seen: it is in another container, or has read {} itself; \
             end that process where it runs",
            home.daemon().join("lock").display()
        );
    };
    let process = pidfd_open(pid, PidfdFlags::empty());
    // The number was that of the daemon when the process was opened, or all of this is over.
    let is_still = look(home)?.is_some_and(|it| it.pid == Some(pid));
    if let (Ok(process), true) = (process, is_still) {
        if args.now {
            // Also to one that was told before.
            send(&process, Signal::KILL).context("cannot end the daemon")?;
        } else {
            tell(home, pid, &process)?;
        }
        let end = Instant::now() + Duration::from_secs(args.timeout);
        if !wait_for(&process, end)? {
            bail!(
                "the daemon (pid {pid}) still finishes what it does after {} s; wait longer with --timeout SECONDS, \
                 or end it with `raddle daemon stop --now`",
                args.timeout
            );
        }
    }
    report(args.json, "stopped", Some(pid), None, "has ended")
}

/// Tells the daemon to end, if nobody did: a second signal would cut off what it finishes. So those who stop it at the
/// same time take turns, until it has said that it was told.
fn tell(home: &Home, pid: Pid, process: &OwnedFd) -> Result<()> {
    let _turn = StopLock::take(home)?;
    let is_told = || -> Result<bool> {
        let found = look(home)?.filter(|it| it.pid == Some(pid));
        Ok(found.is_none_or(|it| it.info.is_some_and(|it| it.ending)))
    };
    if is_told()? {
        return Ok(());
    }
    send(process, Signal::TERM).context("cannot stop the daemon")?;
    let end = Instant::now() + STOP_ACK_TIMEOUT;
    while Instant::now() < end && !is_told()? {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Sends a signal. That the process is gone by now is what was wanted.
fn send(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    match pidfd_send_signal(process, signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent,
    }
}

fn status(home: &Home, args: &DaemonStatus) -> Result<ExitCode> {
    let Some(found) = look(home)? else {
        report(args.json, "stopped", None, None, "does not run")?;
        return Ok(NONE_RUNS.into());
    };
    let (state, text) = state_of(&found);
    report(args.json, state, found.pid, found.info.as_ref(), text)?;
    Ok(match state {
        "running" => ExitCode::SUCCESS,
        _ => DOES_NOT_SERVE.into(),
    })
}

/// What there is to say of the daemon of a home in a line, and whether it is well; nothing if none runs.
pub(crate) fn summary(home: &Home) -> Result<Option<(String, bool)>> {
    let Some(found) = look(home)? else {
        return Ok(None);
    };
    let (state, _) = state_of(&found);
    let listen = found.info.iter().flat_map(|it| it.listen.iter());
    let listen: String = listen.map(|it| format!(", {it}")).collect();
    let is_well = state != "stuck";
    Ok(Some((
        format!("the daemon{found} is {state}{listen}"),
        is_well,
    )))
}

/// How a daemon that runs is, for programs and for people.
fn state_of(found: &RunningDaemon) -> (&'static str, &'static str) {
    let is_well = |it: &String| livez::is_well(it).unwrap_or(false);
    match &found.info {
        None => ("starting", "starts"),
        Some(said) if said.ending => ("ending", "ends"),
        Some(said) if said.listen.iter().all(is_well) => ("running", "runs"),
        Some(_) => (
            "stuck",
            "runs, and does not answer; `raddle daemon stop --now` ends it",
        ),
    }
}

/// Waits for the end of a process; whether it came in time.
fn wait(pid: Pid, end: Instant) -> Result<bool> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => wait_for(&process, end),
        Err(Errno::SRCH) => Ok(true),
        Err(error) => Err(error).context("cannot watch the daemon"),
    }
}

fn wait_for(process: &impl std::os::fd::AsFd, end: Instant) -> Result<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).context("that is too long to wait")?;
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut polled, Some(&left)) {
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
    said: Option<&DaemonInfo>,
    text: &str,
) -> Result<ExitCode> {
    let mut printer = Printer::new();
    if is_json {
        printer.line(&as_json(state, pid, said).to_string())?;
    } else {
        let pid = pid.map(|it| format!(" (pid {it})")).unwrap_or_default();
        printer.line(&format!("the daemon{pid} {text}"))?;
        let said = said.into_iter();
        for line in said.flat_map(lines) {
            printer.line(&sanitize(&line))?;
        }
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn lines(said: &DaemonInfo) -> Vec<String> {
    let listen = said.listen.iter().map(|it| format!("  listens on {it}"));
    let log = said
        .log
        .iter()
        .map(|it| format!("  logs to {}", it.display()));
    let version = format!("  has version {}", said.version);
    listen.chain(log).chain([version]).collect()
}

fn as_json(state: &str, pid: Option<Pid>, said: Option<&DaemonInfo>) -> Value {
    json!({
        "state": state,
        "pid": pid.map(Pid::as_raw_pid),
        "listen": said.map(|it| &it.listen),
        "log": said.and_then(|it| it.log.as_ref()),
        "version": said.map(|it| &it.version),
    })
}
