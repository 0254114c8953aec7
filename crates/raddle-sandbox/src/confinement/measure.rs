//! Measures how strong the sandbox is on this machine, by trying to break out.

mod cache;
mod testbed;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};

use self::testbed::TestbedGuard;
use super::attempt::{self, Attempt};
use super::{SandboxHost, Tier, helper, syscalls};
use crate::launch::Launch;
use crate::policy::{Policy, ReadScope, SandboxRules};
use crate::process::{self, KeeperCommand};
use crate::programs::ProgramError;

/// Inputs of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// A binary whose `main` calls [`take_over`](super::take_over) first: our own.
    pub helper: PathBuf,
    /// The bubblewrap to start, or the reason why it cannot be used.
    pub bubblewrap: Result<PathBuf, ProgramError>,
    /// A folder for the testbed if there is no `cache` next to which it could be. The testbed is
    /// removed afterwards, or by the next measurement.
    pub scratch: PathBuf,
    /// A file that caches the result until the machine, bubblewrap or our binary changes. A result
    /// that a lack of resources or a timeout caused is not cached.
    pub cache: Option<PathBuf>,
}

/// Result of a measurement.
#[derive(Debug)]
pub struct Measurement {
    /// The strongest sandbox that held.
    pub sandbox: SandboxHost,
    /// The version of Landlock in the kernel; 0 without it.
    pub landlock: i64,
    /// Result of each attempt; empty where there is no sandbox.
    pub findings: Vec<Finding>,
    /// Reasons why the stronger tiers failed.
    pub short_of: Vec<String>,
    /// Whether the result comes from the cache.
    pub cached: bool,
}

/// Result of one attempt.
#[derive(Debug)]
pub struct Finding {
    /// The attempt that was made.
    pub attempt: &'static Attempt,
    /// Whether the sandbox stopped it.
    pub stopped: bool,
}

/// Timeout of all attempts together.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest path of the testbed's folder; a longer one would exceed the kernel's limit for socket
/// paths.
const TESTBED_PATH_BYTES_MAX: usize = 66;

/// Returns the strongest sandbox that holds, by trying to break out of it, or the cached result.
/// Blocks: some 50 ms when it has to try.
pub fn measure(options: &Options) -> Measurement {
    let key = cache::key(options);
    if let (Some(file), Some(key)) = (&options.cache, &key)
        && let Some(measurement) = cache::read(file, key, options)
    {
        return measurement;
    }
    testbed::remove_stale(&options.scratch);
    testbed::remove_stale(testbed_folder(options));
    let TrialResult {
        measurement,
        is_verdict,
    } = try_all(options);
    if let (Some(file), Some(key), true) = (&options.cache, &key, is_verdict) {
        // Without the cache the next start measures again.
        let _ = cache::write(file, key, &measurement);
    }
    measurement
}

/// A measurement, and whether a repetition would give the same result.
struct TrialResult {
    measurement: Measurement,
    is_verdict: bool,
}

/// Reason why a tier does not hold.
struct Shortfall {
    reason: String,
    /// Whether the cause was temporary: a lack of resources or a timeout.
    is_temporary: bool,
}

fn try_all(options: &Options) -> TrialResult {
    let landlock = syscalls::landlock_version();
    let (mut short_of, mut is_verdict) = (Vec::new(), true);
    let mut strongest = None;
    for tier in [Tier::A, Tier::B] {
        let sandbox = sandbox_host(options, tier);
        match try_tier(&sandbox, options, landlock) {
            Ok(findings) => {
                strongest = Some((sandbox, findings));
                break;
            }
            Err(Shortfall {
                reason: why,
                is_temporary: is_passing,
            }) => {
                short_of.push(why);
                is_verdict &= !is_passing;
            }
        }
    }
    let (sandbox, findings) =
        strongest.unwrap_or_else(|| (sandbox_host(options, Tier::C), Vec::new()));
    let measurement = Measurement {
        sandbox,
        landlock,
        findings,
        short_of,
        cached: false,
    };
    TrialResult {
        measurement,
        is_verdict,
    }
}

fn sandbox_host(options: &Options, tier: Tier) -> SandboxHost {
    let bubblewrap = options.bubblewrap.clone().unwrap_or_default();
    SandboxHost::new(tier, bubblewrap, options.helper.clone())
}

/// Returns the findings if the tier holds, otherwise the reason why it does not.
fn try_tier(
    sandbox: &SandboxHost,
    options: &Options,
    landlock: i64,
) -> Result<Vec<Finding>, Shortfall> {
    let verdict = |why: String| Shortfall {
        reason: why,
        is_temporary: false,
    };
    match (sandbox.tier, &options.bubblewrap) {
        (Tier::A, Err(why)) => return Err(verdict(why.to_string())),
        (Tier::B, _) if landlock < 4 => {
            return Err(verdict(format!(
                "the kernel has Landlock version {landlock}, and 4 is needed (Linux 6.7, enabled at boot)"
            )));
        }
        _ => {}
    }
    let name = match sandbox.tier {
        Tier::A => "namespaces",
        _ => "Landlock alone",
    };
    let findings = attempt_all(sandbox, options).map_err(|short| Shortfall {
        reason: format!("{name}: {}", short.reason),
        ..short
    })?;
    for finding in &findings {
        let promised = sandbox.tier == Tier::A || finding.attempt.second_tier.stops(landlock);
        if promised && !finding.stopped {
            return Err(verdict(format!(
                "{name}: does not hold here: {}",
                finding.attempt.shows
            )));
        }
    }
    Ok(findings)
}

/// Returns the folder for the testbed: next to the cache, among the server's own files. Commands of
/// another server may write `/tmp`, and could change the report of the attempts there.
fn testbed_folder(options: &Options) -> &Path {
    let own = options.cache.as_deref().and_then(Path::parent);
    let own = own.filter(|it| it.as_os_str().len() <= TESTBED_PATH_BYTES_MAX);
    let is_usable = |it: &&Path| {
        let result = fs::DirBuilder::new().recursive(true).mode(0o700).create(it);
        result.is_ok() && access(*it, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    own.filter(is_usable).unwrap_or(&options.scratch)
}

/// Creates the testbed, runs the attempts in the sandbox, and reads their report.
fn attempt_all(sandbox: &SandboxHost, options: &Options) -> Result<Vec<Finding>, Shortfall> {
    let guard = TestbedGuard::new(testbed_folder(options))?;
    let testbed = &guard.testbed;
    let workspace = testbed.workspace();
    let mut rules = SandboxRules::workspace_write(vec![workspace.clone()]);
    rules.read = ReadScope::Listed(Vec::new());
    if sandbox.tier == Tier::B {
        rules.protected.clear();
    }
    let mut args = vec![helper::ATTEMPTS_ARG.into()];
    args.extend(testbed.args());
    let launch = Launch {
        program: sandbox.helper_path().into(),
        args,
        cwd: workspace.clone(),
        env: Vec::new(),
    };
    let confined = sandbox
        .wrap(launch, &Policy::Confined(rules))
        .map_err(io::Error::other)?;

    let errors = testbed.folder.join("errors");
    let keeper = KeeperCommand::of(options.helper.clone());
    let exit = process::run(&keeper, &confined, &File::create(&errors)?, ATTEMPT_TIMEOUT)?;
    if exit.is_none() {
        return Err(io::Error::other("the attempts timed out").into());
    }
    let reports = attempt::report(&workspace).map_err(|_| stderr_reason(&errors))?;
    Ok(reports
        .into_iter()
        .map(|(attempt, why)| Finding {
            attempt,
            stopped: why.is_some(),
        })
        .collect())
}

/// An I/O error may be temporary.
impl From<io::Error> for Shortfall {
    fn from(error: io::Error) -> Self {
        Self {
            reason: error.to_string(),
            is_temporary: true,
        }
    }
}

/// Texts of errors that report a temporary lack of resources. A missing permission of bubblewrap
/// stays missing.
const SHORTAGE_ERRORS: [&str; 5] = [
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "No space left on device",
    "Too many open files",
    "Disk quota exceeded",
];

/// Takes the reason from stderr when there is no report: bubblewrap names the permission that it
/// lacks.
fn stderr_reason(errors: &Path) -> Shortfall {
    let text = fs::read_to_string(errors).unwrap_or_default();
    let line = text.lines().next();
    Shortfall {
        is_temporary: line.is_none_or(|line| SHORTAGE_ERRORS.iter().any(|it| line.contains(it))),
        reason: line
            .unwrap_or("the attempts ended without a report")
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testbed_lies_among_the_servers_own_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("new");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("a file");
        let scratch = PathBuf::from("/tmp");
        for (cache, expected) in [
            (Some(own.join("fence")), &own),
            (None, &scratch),
            (Some(file.join("fence")), &scratch),
            (Some(own.join("x".repeat(70)).join("fence")), &scratch),
        ] {
            let options = Options {
                helper: "/opt/raddle".into(),
                bubblewrap: Ok("/usr/bin/bwrap".into()),
                scratch: scratch.clone(),
                cache,
            };
            assert_eq!(testbed_folder(&options), expected);
        }
    }
}
