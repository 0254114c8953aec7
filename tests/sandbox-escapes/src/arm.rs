//! All attempts in one arm: inside a tier, or without a fence.

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
use crate::ordinary_work::{ORDINARY, OrdinaryWork, STORM};
use crate::plain_bwrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arm {
    A,
    /// The first tier, with every file to read and with network
    Granted,
    /// The first tier, where the folder around the workspace can be written, as around one below `/tmp`
    Around,
    /// The first tier, as on a kernel without Landlock
    Old,
    B,
    /// Bubblewrap as it is usually called
    Usual,
    /// Without a fence
    Open,
}

#[derive(Args)]
pub struct ArmArgs {
    /// Which
    arm: Arm,
    /// Where bubblewrap is
    bubblewrap: PathBuf,
    /// Where folders can be made
    scratch: PathBuf,
}

/// The attempt that the kernel answers by ending the process.
const ENDED: &str = "call-of-another-machine";

impl ArmArgs {
    /// Prints a line for each attempt: `open NAME` or `held NAME why`; and for each ordinary work that could
    /// not be done.
    pub fn run(&self) -> Result<bool> {
        // For as long as the process lives: whoever loses its terminal is ended.
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

    /// The work that can be done in this arm.
    fn work(&self) -> impl Iterator<Item = &'static OrdinaryWork> {
        let arm = self.arm;
        // The kernel counts no processes of root.
        let counted = !rustix::process::geteuid().is_root();
        ORDINARY.iter().filter(move |work| match arm {
            _ if work.name == STORM && !counted => false,
            // Its `/tmp` is the host's, which it may only read.
            Arm::Granted => work.name != "own-tmp",
            Arm::B => work.second_tier,
            Arm::A | Arm::Around | Arm::Old => true,
            Arm::Usual | Arm::Open => false,
        })
    }

    /// Why it failed, or nothing if it did not.
    fn make(&self, name: &str, terminal: &ParentTerminal) -> Result<Option<String>> {
        self.try_to_make(name, terminal)
            .with_context(|| format!("the attempt {name}"))
    }

    fn try_to_make(&self, name: &str, terminal: &ParentTerminal) -> Result<Option<String>> {
        let ground = EscapeHost::new(&self.scratch)?;
        let program = std::env::current_exe()?;
        let mut args = vec!["attempt".into(), name.into()];
        args.extend(ground.stage.words());
        let launch = Launch {
            program: program.clone().into(),
            args,
            cwd: ground.stage.workspace(),
            env: Vec::new(),
        };
        let fence = |tier| SandboxHost::new(tier, self.bubblewrap.clone(), program.clone());
        let fenced = |tier, rules| fence(tier).wrap(launch.clone(), &Policy::Confined(rules));
        let started = match self.arm {
            Arm::A | Arm::Old => fenced(Tier::A, ground.rules(Tier::A, &program))?,
            Arm::Granted => {
                let mut rules = ground.rules(Tier::A, &program);
                rules.read = ReadScope::All;
                rules.network = Network::Open;
                rules.tmp = Tmp::Plain;
                fenced(Tier::A, rules)?
            }
            Arm::Around => {
                let mut rules = ground.rules(Tier::A, &program);
                rules.scratch = vec![ground.stage.folder.clone()];
                fenced(Tier::A, rules)?
            }
            Arm::B => fenced(Tier::B, ground.rules(Tier::B, &program))?,
            Arm::Usual => {
                let launch = plain_bwrap::launch(&self.bubblewrap, &ground, launch);
                fence(Tier::C).wrap(launch, &Policy::FullAccess)?
            }
            Arm::Open => fence(Tier::C).wrap(launch, &Policy::FullAccess)?,
        };
        // Without a fence the environment is what it happens to be.
        let inherit = self.arm == Arm::Open;
        let errors = ground.stage.folder.join("errors");
        let stdin = if ON_TERMINAL.contains(&name) {
            Stdio::from(terminal.slave.try_clone()?)
        } else {
            Stdio::null()
        };
        let status = start(&started.launch, inherit, stdin, &errors)?;
        drop(started);
        let said = fs::read_to_string(&errors)?;
        let claim = claim(name, status, said.trim())?;
        Ok(match ground.noticed()? {
            Some(_) => None,
            None => claim,
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

/// What the attempt says of itself. An end that it did not choose is not a success of the fence: perhaps it
/// never began.
fn claim(name: &str, status: ExitStatus, said: &str) -> Result<Option<String>> {
    let ended = status.signal() == Some(libc::SIGSYS) || status.code() == Some(128 + libc::SIGSYS);
    match status.code() {
        Some(0) => Ok(None),
        Some(code) if code == i32::from(BLOCKED_EXIT_CODE) => Ok(Some(said.replace('\n', " "))),
        _ if ended && name == ENDED => Ok(Some("ended by the filter".to_owned())),
        _ => bail!("it ended by itself with {status}: {said}"),
    }
}

/// The terminal that the server was started from.
struct ParentTerminal {
    slave: File,
    _master: OwnedFd,
}

impl ParentTerminal {
    /// Whoever opens a terminal first in a session of its own belongs to it.
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
