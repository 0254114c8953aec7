//! All attempts in one arm: inside a tier, or without a sandbox.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use raddle_sandbox::{Launch, Network, Policy, ReadScope, SandboxHost, Tier, Tmp};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::attempts::{self, BLOCKED_EXIT_CODE, ON_TERMINAL};
use crate::host::EscapeHost;
use crate::ordinary_work::{FORK_BOMB, ORDINARY, OrdinaryWork};
use crate::plain_bwrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arm {
    A,
    /// The first tier, with every file to read and with network
    Granted,
    /// The first tier, where the folder around the workspace can be written, as around one below
    /// `/tmp`
    Around,
    /// The first tier, as on a kernel without Landlock
    Old,
    B,
    /// Bubblewrap with its usual arguments
    Usual,
    /// Without a sandbox
    Open,
}

#[derive(Args)]
pub struct ArmArgs {
    /// The arm to run
    arm: Arm,
    /// Path of the bubblewrap binary
    bubblewrap: PathBuf,
    /// A folder for temporary files
    scratch: PathBuf,
}

/// The attempt to which the kernel responds by killing the process.
const KILLED: &str = "call-of-another-machine";

impl ArmArgs {
    /// Prints a line for each attempt: `open NAME` or `held NAME why`; and for each ordinary work
    /// that could not be done.
    pub fn run(&self) -> Result<bool> {
        // For as long as the process lives: a session that loses its terminal is ended.
        let terminal: &ParentTerminal = Box::leak(Box::new(ParentTerminal::open()?));
        if self.arm == Arm::Old {
            plain_bwrap::without_landlock()?;
        }
        for attempt in attempts::all() {
            match self.make(attempt.name, terminal)? {
                None => println!("open {}", attempt.name),
                Some(why) => println!("held {} {why}", attempt.name),
            }
        }
        for work in self.work() {
            if let Some(why) = self.make(work.name, terminal)? {
                println!("idle {} {why}", work.name);
            }
        }
        Ok(true)
    }

    /// Returns the work that can be done in this arm.
    fn work(&self) -> impl Iterator<Item = &'static OrdinaryWork> {
        let arm = self.arm;
        // The kernel does not limit the processes of root.
        let counted = !rustix::process::geteuid().is_root();
        ORDINARY.iter().filter(move |work| match arm {
            _ if work.name == FORK_BOMB && !counted => false,
            // Its `/tmp` is the host's, which it may only read.
            Arm::Granted => work.name != "own-tmp",
            Arm::B => work.second_tier,
            Arm::A | Arm::Around | Arm::Old => true,
            Arm::Usual | Arm::Open => false,
        })
    }

    /// Returns the reason of the failure, or `None` if it succeeded.
    fn make(&self, name: &str, terminal: &ParentTerminal) -> Result<Option<String>> {
        self.try_make(name, terminal)
            .with_context(|| format!("the attempt {name}"))
    }

    fn try_make(&self, name: &str, terminal: &ParentTerminal) -> Result<Option<String>> {
        let host = EscapeHost::new(&self.scratch)?;
        let program = std::env::current_exe()?;
        let mut args = vec!["attempt".into(), name.into()];
        args.extend(host.testbed.args());
        let launch = Launch {
            program: program.clone().into(),
            args,
            cwd: host.testbed.workspace(),
            env: Vec::new(),
        };
        let sandbox = |tier| SandboxHost::new(tier, self.bubblewrap.clone(), program.clone());
        let confine = |tier, rules| sandbox(tier).wrap(launch.clone(), &Policy::Confined(rules));
        let confined = match self.arm {
            Arm::A | Arm::Old => confine(Tier::A, host.rules(Tier::A, &program))?,
            Arm::Granted => {
                let mut rules = host.rules(Tier::A, &program);
                rules.read = ReadScope::All;
                rules.network = Network::Open;
                rules.tmp = Tmp::Plain;
                confine(Tier::A, rules)?
            }
            Arm::Around => {
                let mut rules = host.rules(Tier::A, &program);
                rules.scratch = vec![host.testbed.folder.clone()];
                confine(Tier::A, rules)?
            }
            Arm::B => confine(Tier::B, host.rules(Tier::B, &program))?,
            Arm::Usual => {
                let launch = plain_bwrap::launch(&self.bubblewrap, &host, launch);
                sandbox(Tier::C).wrap(launch, &Policy::FullAccess)?
            }
            Arm::Open => sandbox(Tier::C).wrap(launch, &Policy::FullAccess)?,
        };
        // Without a sandbox the command inherits the environment.
        let inherit = self.arm == Arm::Open;
        let errors = host.testbed.folder.join("errors");
        let stdin = if ON_TERMINAL.contains(&name) {
            Stdio::from(terminal.slave.try_clone()?)
        } else {
            Stdio::null()
        };
        let status = start(&confined.launch, inherit, stdin, &errors)?;
        drop(confined);
        let stderr = fs::read_to_string(&errors)?;
        let result = attempt_result(name, status, stderr.trim())?;
        Ok(match host.detect_escape()? {
            Some(_) => None,
            None => result,
        })
    }
}

fn start(launch: &Launch, inherit: bool, stdin: Stdio, errors: &Path) -> Result<ExitStatus> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd);
    if !inherit {
        command.env_clear();
    }
    command
        .envs(launch.env.iter().cloned())
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(File::create(errors)?)
        .status()
        .with_context(|| format!("{} does not start", launch.program.display()))
}

/// Returns the attempt's own result. An exit that it did not choose is not a success of the
/// sandbox: perhaps it never began.
fn attempt_result(name: &str, status: ExitStatus, stderr: &str) -> Result<Option<String>> {
    let is_killed =
        status.signal() == Some(libc::SIGSYS) || status.code() == Some(128 + libc::SIGSYS);
    match status.code() {
        Some(0) => Ok(None),
        Some(code) if code == i32::from(BLOCKED_EXIT_CODE) => Ok(Some(stderr.replace('\n', " "))),
        _ if is_killed && name == KILLED => Ok(Some("ended by the filter".to_owned())),
        _ => bail!("it ended by itself with {status}: {stderr}"),
    }
}

/// The terminal from which the server was started.
struct ParentTerminal {
    slave: File,
    _master: OwnedFd,
}

impl ParentTerminal {
    /// Opens a terminal; the first one that a new session opens becomes its controlling terminal.
    fn open() -> Result<Self> {
        rustix::process::setsid().context("a session of its own")?;
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let slave = File::options()
            .read(true)
            .write(true)
            .open(name.to_str()?)?;
        Ok(Self {
            slave,
            _master: master,
        })
    }
}
