//! How strong the fence is on this machine: not assumed, but tried.

mod cache;

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::attempt::{self, Attempt, Stage};
use super::{Fence, Tier, inside, system};
use crate::launch::Launch;
use crate::policy::{Policy, Read, Rules};

/// What is needed to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// A binary whose `main` calls [`take_over`](super::take_over) first: our own.
    pub helper: PathBuf,
    /// Where bubblewrap is, if anywhere.
    pub bubblewrap: Option<PathBuf>,
    /// A folder for the stage of the attempts, which is removed again.
    pub scratch: PathBuf,
    /// A file that keeps what was found until the machine, bubblewrap or our binary is another.
    pub cache: Option<PathBuf>,
}

/// What was found.
#[derive(Debug)]
pub struct Measured {
    /// The strongest fence that held.
    pub fence: Fence,
    /// The version of Landlock in the kernel; 0 without it.
    pub landlock: i64,
    /// What became of each attempt; none where there is no fence.
    pub findings: Vec<Finding>,
    /// Why it is no stronger fence.
    pub short_of: Vec<String>,
    /// Whether it was found earlier.
    pub cached: bool,
}

/// What became of an attempt.
#[derive(Debug)]
pub struct Finding {
    /// The attempt.
    pub attempt: &'static Attempt,
    /// Whether it was stopped.
    pub held: bool,
}

/// An attempt that is not over by then never will be.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds the strongest fence that holds, by trying to break out of it, or reads what was found earlier.
/// Blocks: some 50 ms when it has to try.
pub fn measure(options: &Options) -> Measured {
    let key = cache::key(options);
    if let (Some(file), Some(key)) = (&options.cache, &key)
        && let Some(found) = cache::read(file, key, options)
    {
        return found;
    }
    let found = try_all(options);
    if let (Some(file), Some(key)) = (&options.cache, &key) {
        // Without it the next start measures again.
        let _ = cache::write(file, key, &found);
    }
    found
}

/// Looks for bubblewrap along a `PATH`. Relative folders are passed over: what they mean depends on where we
/// happen to be, which may be a workspace.
pub fn find_bubblewrap(path: &std::ffi::OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("bwrap"))
        .find(|file| file.is_file())
}

fn try_all(options: &Options) -> Measured {
    let landlock = system::landlock_version();
    let mut short_of = Vec::new();
    for tier in [Tier::A, Tier::B] {
        let fence = fence(options, tier);
        match try_tier(&fence, options, landlock) {
            Ok(findings) => {
                return Measured {
                    fence,
                    landlock,
                    findings,
                    short_of,
                    cached: false,
                };
            }
            Err(why) => short_of.push(why),
        }
    }
    Measured {
        fence: fence(options, Tier::C),
        landlock,
        findings: Vec::new(),
        short_of,
        cached: false,
    }
}

fn fence(options: &Options, tier: Tier) -> Fence {
    let bubblewrap = options.bubblewrap.clone().unwrap_or_default();
    Fence::new(tier, bubblewrap, options.helper.clone())
}

/// What became of the attempts, if the tier is what it is said to be; else why it is not.
fn try_tier(fence: &Fence, options: &Options, landlock: i64) -> Result<Vec<Finding>, String> {
    match fence.tier {
        Tier::A if options.bubblewrap.is_none() => {
            return Err("bubblewrap is not installed: no program `bwrap` on PATH".to_owned());
        }
        Tier::B if landlock < 4 => {
            return Err(format!(
                "the kernel has Landlock version {landlock}, and 4 is needed (Linux 6.7, enabled at boot)"
            ));
        }
        _ => {}
    }
    let name = match fence.tier {
        Tier::A => "namespaces",
        _ => "Landlock alone",
    };
    let findings = attempt_all(fence, options).map_err(|error| format!("{name}: {error}"))?;
    for finding in &findings {
        let promised = fence.tier == Tier::A || finding.attempt.second_tier.holds(landlock);
        if promised && !finding.held {
            return Err(format!(
                "{name}: does not hold here: {}",
                finding.attempt.shows
            ));
        }
    }
    Ok(findings)
}

/// Sets the stage, sends the attempts in, and reads what they report.
fn attempt_all(fence: &Fence, options: &Options) -> io::Result<Vec<Finding>> {
    let folder = tempfile::Builder::new()
        .prefix("raddle-fence-")
        .tempdir_in(&options.scratch)?;
    // Where we are fenced in ourselves and may not listen, neither may what we start.
    let tcp = TcpListener::bind("127.0.0.1:0").ok();
    let port = tcp.as_ref().and_then(|it| it.local_addr().ok());
    let host = std::process::id();
    let stage = Stage {
        folder: fs::canonicalize(folder.path())?,
        tcp: port.map_or(0, |it| it.port()),
        host,
        host_began: attempt::began(host)?,
    };
    fs::create_dir(stage.outside())?;
    fs::write(stage.outside().join("canary"), "")?;
    fs::create_dir_all(stage.workspace().join(".git/hooks"))?;
    let _named = UnixListener::bind(stage.socket());
    let _unnamed =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(stage.abstract_socket())?);

    let workspace = stage.workspace();
    let mut rules = Rules::workspace_write(vec![workspace.clone()]);
    rules.read = Read::Listed(Vec::new());
    if fence.tier == Tier::B {
        rules.protected.clear();
    }
    let mut args = vec![inside::ATTEMPTS.into()];
    args.extend(stage.words());
    let launch = Launch {
        program: fence.helper_inside().into(),
        args,
        cwd: workspace.clone(),
        env: Vec::new(),
    };
    let fenced = fence
        .wrap(launch, &Policy::Fenced(rules))
        .map_err(io::Error::other)?;

    let errors = stage.folder.join("errors");
    run(&fenced.launch, &errors)?;
    let reports = attempt::report(&workspace).map_err(|_| said(&errors))?;
    Ok(reports
        .into_iter()
        .map(|(attempt, why)| Finding {
            attempt,
            held: why.is_some(),
        })
        .collect())
}

/// Without a report, what was said on stderr is the reason: bubblewrap names what it was not allowed.
fn said(errors: &Path) -> io::Error {
    let text = fs::read_to_string(errors).unwrap_or_default();
    let line = text
        .lines()
        .next()
        .unwrap_or("the attempts ended without a report");
    io::Error::other(line.to_owned())
}

fn run(launch: &Launch, errors: &Path) -> io::Result<()> {
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().cloned())
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(errors)?)
        .spawn()?;
    let ended = wait(&child);
    if !matches!(ended, Ok(true)) {
        child.kill()?;
    }
    child.wait()?;
    match ended? {
        true => Ok(()),
        false => Err(io::Error::other("the attempts did not come to an end")),
    }
}

/// Whether it ended in time.
fn wait(child: &Child) -> io::Result<bool> {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    // The server has signals of its own, which must not end this early.
    let ready =
        retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)))?;
    Ok(ready > 0)
}
