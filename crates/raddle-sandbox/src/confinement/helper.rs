//! The helper: our own binary, started inside the sandbox. It restricts itself and becomes the
//! command.

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

/// The argument that makes our binary the helper.
pub(super) const HELPER_ARG: &str = "sandbox-inside";
/// The argument that makes it try to break out.
pub(super) const ATTEMPTS_ARG: &str = "sandbox-attempts";

/// Prefix of the command's variables until the helper passes them on: neither bubblewrap nor the
/// loader of either program may act on them, because both still run outside the sandbox.
const VARIABLE_PREFIX: &str = "RADDLE_COMMAND_";

/// The exit codes that shells use.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// The exit code with which `env` and `timeout` report their own failure.
const NOT_CONFINED: u8 = 125;

/// Runs the helper or the keeper if the arguments ask for one; the `main` of the helper binary must
/// call it first.
///
/// A helper becomes the command, or returns the exit code of its failure; a keeper runs until its
/// command has ended. Both serve one command and must be quick: no command line, no log, no
/// runtime.
pub fn take_over(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    let first = args.next()?;
    if first == KEEP {
        Some(keep())
    } else if first == HELPER_ARG {
        Some(become_command(&mut args))
    } else if first == ATTEMPTS_ARG {
        Some(attempt::answer(&mut args))
    } else {
        None
    }
}

/// Returns the environment in which bubblewrap and the helper are started.
pub(super) fn pack(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    env.iter()
        .map(|(name, value)| {
            let mut packed = OsString::from(VARIABLE_PREFIX);
            packed.push(name);
            (packed, value.clone())
        })
        .collect()
}

/// Returns the environment of the command.
fn unpack(env: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    env.filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(VARIABLE_PREFIX.as_bytes())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    })
    .collect()
}

fn become_command(args: &mut impl Iterator<Item = OsString>) -> ExitCode {
    let Some(plan) = HelperPlan::parse(args) else {
        report("invalid plan for the sandbox helper; only raddle starts it");
        return NOT_CONFINED.into();
    };
    let Some(program) = args.next() else {
        report("the sandbox helper got no command");
        return NOT_CONFINED.into();
    };
    if let Err(error) = lock(&plan) {
        report(&format!(
            "the sandbox could not be set up, so the command was not run: {error}"
        ));
        return NOT_CONFINED.into();
    }
    syscalls::reset_interrupts();
    let mut command = Command::new(&program);
    command
        .args(args)
        .env_clear()
        .envs(unpack(std::env::vars_os()));
    let error = match plan.tier {
        Tier::A => match supervise(&mut command) {
            Ok(code) => return code.into(),
            Err(error) => error,
        },
        _ => command.exec(),
    };
    report(&format!("cannot run {}: {error}", program.display()));
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND.into(),
        _ => CANNOT_RUN.into(),
    }
}

/// Runs the command as the first process of its namespace, and exits with it. The kernel kills all
/// remaining processes before the parent can observe that this process has exited. It is restricted
/// like the command, so an attack on it gains nothing.
fn supervise(command: &mut Command) -> io::Result<u8> {
    let first = command.spawn()?.id();
    // A parent that waits for the command to close these must not wait for this process too.
    let null_device = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null_device)?;
    rustix::stdio::dup2_stdout(&null_device)?;
    rustix::stdio::dup2_stderr(&null_device)?;
    loop {
        // This process reaps orphans too.
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

/// Applies every restriction; a step that fails ends the helper.
fn lock(plan: &HelperPlan) -> Result<(), String> {
    let step = |operation: &'static str| move |error: io::Error| format!("{operation}: {error}");
    if plan.tier == Tier::A {
        inode_pins::check(&plan.inode_pins, &plan.write).map_err(step("checking the mounts"))?;
    }
    leave_terminal().map_err(step("leaving the terminal"))?;
    if let Network::Proxy(socket) = &plan.network {
        // The last unix socket that is created inside.
        listen_inside(socket).map_err(step("connecting to the proxy"))?;
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

/// Detaches from the terminal of the server, which a command without a terminal must not find. A
/// command with a terminal keeps it, and cannot insert input into it.
fn leave_terminal() -> io::Result<()> {
    if (0..3).any(syscalls::is_terminal) {
        return Ok(());
    }
    match File::open("/dev/tty") {
        Ok(terminal) => syscalls::leave_terminal(terminal),
        Err(_) => Ok(()),
    }
}

/// Drops all capabilities, also from the bounding set, which limits what a later program could get.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Fails past the last capability of the kernel, and without the privilege; then there are
        // none to get.
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

/// Sets a limit, never above the current one.
fn limit(resource: Resource, count: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let least = |it: Option<u64>| Some(it.map_or(count, |it| it.min(count)));
    let limit = Rlimit {
        current: least(now.current),
        maximum: least(now.maximum),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

fn report(line: &str) {
    // The write may fail; the exit code reports the failure too.
    let _ = writeln!(io::stderr(), "raddle: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        of.iter().map(|(a, b)| (a.into(), b.into())).collect()
    }

    #[test]
    fn variables_of_a_command_take_effect_only_when_it_runs() {
        let command = pairs(&[("LD_PRELOAD", "/w/evil.so"), ("PATH", "/bin"), ("", "odd")]);
        let packed = pack(&command);
        assert!(
            packed
                .iter()
                .all(|(name, _)| name.to_string_lossy().starts_with(VARIABLE_PREFIX))
        );
        let ours = pairs(&[("PWD", "/"), ("HOME", "/root")]);
        assert_eq!(unpack(packed.into_iter().chain(ours)), command);
    }

    #[test]
    fn only_its_own_arguments_make_it_the_helper() {
        for args in [
            &["raddle"][..],
            &["raddle", "app-server"],
            &["raddle", "x", HELPER_ARG],
        ] {
            assert_eq!(take_over(args.iter().map(OsString::from)), None);
        }
    }
}
