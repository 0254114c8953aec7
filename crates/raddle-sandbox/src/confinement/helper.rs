//! The helper: our own binary, started inside the fence. It locks itself in and becomes the command.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::io::retry_on_intr;
use rustix::process::{Resource, Rlimit, Signal, WaitOptions, wait};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::plan::HelperPlan;
use super::{Tier, attempt, filter, inode_pins, landlock, syscalls};
use crate::egress::listen_inside;
use crate::policy::Network;
use crate::process::{KEEP, keep};

/// The word that makes our binary the helper.
pub(super) const HELPER_WORD: &str = "fence-inside";
/// The word that makes it try to break out.
pub(super) const ATTEMPTS: &str = "fence-attempts";

/// What the names of the command's variables begin with until the helper hands them over: neither bubblewrap
/// nor the loader of either program may obey them, for both still stand outside.
const VARIABLE: &str = "RADDLE_COMMAND_";

/// As a shell says it.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// As `env` and `timeout` say that they themselves failed.
const NOT_CONFINED: u8 = 125;

/// Must be called first by the `main` of the binary that a fence names as its helper. If the words say that
/// this process is the helper, it becomes the command, or this is how it fails to; if they say that it is a
/// keeper, it is one. Both are there for one command and must be quick: no command line, no log, no runtime.
pub fn take_over(words: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut words = words.into_iter().skip(1);
    let first = words.next()?;
    if first == KEEP {
        Some(keep())
    } else if first == HELPER_WORD {
        Some(become_command(&mut words))
    } else if first == ATTEMPTS {
        Some(attempt::answer(&mut words))
    } else {
        None
    }
}

/// The environment in which bubblewrap and the helper are started.
pub(super) fn pack(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    env.iter()
        .map(|(name, value)| {
            let mut packed = OsString::from(VARIABLE);
            packed.push(name);
            (packed, value.clone())
        })
        .collect()
}

/// The environment of the command.
fn unpack(env: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    env.filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(VARIABLE.as_bytes())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    })
    .collect()
}

fn become_command(words: &mut impl Iterator<Item = OsString>) -> ExitCode {
    let Some(plan) = HelperPlan::parse(words) else {
        say("the fence's helper does not understand its plan; it is started by raddle alone");
        return NOT_CONFINED.into();
    };
    let Some(program) = words.next() else {
        say("the fence's helper was given no command");
        return NOT_CONFINED.into();
    };
    if let Err(what) = lock(&plan) {
        say(&format!(
            "the fence could not be closed, so nothing was run: {what}"
        ));
        return NOT_CONFINED.into();
    }
    syscalls::reset_interrupts();
    let mut command = Command::new(&program);
    command
        .args(words)
        .env_clear()
        .envs(unpack(std::env::vars_os()));
    let error = match plan.tier {
        Tier::A => match supervise(&mut command) {
            Ok(code) => return code.into(),
            Err(error) => error,
        },
        _ => command.exec(),
    };
    say(&format!("cannot run {}: {error}", program.display()));
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND.into(),
        _ => CANNOT_RUN.into(),
    }
}

/// Runs the command as the first process of its namespace, and ends with it. The kernel ends whatever it left
/// behind before anyone hears that this process is gone. It is locked in like the command, so there is
/// nothing to gain from it.
fn supervise(command: &mut Command) -> io::Result<u8> {
    let first = command.spawn()?.id();
    // Whoever waits for the command to close these must not wait for this process too.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    loop {
        // Orphans come here too, and are buried.
        let Some((pid, status)) = retry_on_intr(|| wait(WaitOptions::empty()))? else {
            continue;
        };
        if pid.as_raw_nonzero().get() as u32 != first {
            continue;
        }
        let signal = status.terminating_signal().map(|it| 128 + it);
        if let Some(code) = signal.or(status.exit_status()) {
            return Ok(code as u8);
        }
    }
}

/// Each step either holds or ends the helper.
fn lock(plan: &HelperPlan) -> Result<(), String> {
    let step = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    if plan.tier == Tier::A {
        inode_pins::check(&plan.inode_pins, &plan.write)
            .map_err(step("looking at what is mounted"))?;
    }
    leave_terminal().map_err(step("leaving the terminal"))?;
    if let Network::Proxy(socket) = &plan.network {
        // The last unix socket that is made in here.
        listen_inside(socket).map_err(step("opening the way to the proxy"))?;
    }
    syscalls::close_on_exec().map_err(step("closing descriptors"))?;
    if plan.tier == Tier::B {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|it| step("tying it to its parent")(it.into()))?;
    }
    drop_capabilities().map_err(step("dropping capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(|it| step("no new privileges")(it.into()))?;
    limit(Resource::Core, 0).map_err(step("limiting core dumps"))?;
    if let Some(count) = plan.processes_max {
        limit(Resource::Nproc, count).map_err(step("limiting processes"))?;
    }
    landlock::restrict(plan).map_err(|it| format!("Landlock: {it}"))?;
    filter::install(plan).map_err(|it| it.to_string())
}

/// A command that was given no terminal must not find the one that the server was started from. One that was
/// given a terminal keeps it, and cannot type into it.
fn leave_terminal() -> io::Result<()> {
    if (0..3).any(syscalls::is_terminal) {
        return Ok(());
    }
    match File::open("/dev/tty") {
        Ok(terminal) => syscalls::leave_terminal(terminal),
        Err(_) => Ok(()),
    }
}

/// Also from the set that bounds what a later program could get.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Fails past the last one that the kernel knows, and without the right to; then there are none to get.
        let _ = rustix::thread::remove_capability_from_bounding_set(one);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, none)?)
}

/// Never more than it was.
fn limit(resource: Resource, count: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let least = |it: Option<u64>| Some(it.map_or(count, |it| it.min(count)));
    let limit = Rlimit {
        current: least(now.current),
        maximum: least(now.maximum),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

fn say(line: &str) {
    // Nobody may be reading; the exit status says it too.
    let _ = writeln!(io::stderr(), "raddle: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        of.iter().map(|(a, b)| (a.into(), b.into())).collect()
    }

    #[test]
    fn nothing_of_a_command_is_obeyed_before_it_runs_and_nothing_else_reaches_it() {
        let command = pairs(&[("LD_PRELOAD", "/w/evil.so"), ("PATH", "/bin"), ("", "odd")]);
        let packed = pack(&command);
        assert!(
            packed
                .iter()
                .all(|(name, _)| name.to_string_lossy().starts_with(VARIABLE))
        );
        let ours = pairs(&[("PWD", "/"), ("HOME", "/root")]);
        assert_eq!(unpack(packed.into_iter().chain(ours)), command);
    }

    #[test]
    fn only_its_own_words_make_it_the_helper() {
        for words in [
            &["raddle"][..],
            &["raddle", "app-server"],
            &["raddle", "x", HELPER_WORD],
        ] {
            assert_eq!(take_over(words.iter().map(OsString::from)), None);
        }
    }
}
