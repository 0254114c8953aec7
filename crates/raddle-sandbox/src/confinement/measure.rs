//! How strong the fence is on this machine: not assumed, but tried.

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

/// What is needed to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// A binary whose `main` calls [`take_over`](super::take_over) first: our own.
    pub helper: PathBuf,
    /// The bubblewrap to start, or why there is none.
    pub bubblewrap: Result<PathBuf, ProgramError>,
    /// A folder for the stage of the attempts if there is no `cache` to put it beside. The stage is removed again; by
    /// the next who measures, if need be.
    pub scratch: PathBuf,
    /// A file that keeps what was found until the machine, bubblewrap or our binary is another. What may be
    /// found differently the next time, because there was no room or no time, is not kept.
    pub cache: Option<PathBuf>,
}

/// What was found.
#[derive(Debug)]
pub struct Measurement {
    /// The strongest fence that held.
    pub sandbox: SandboxHost,
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
    pub stopped: bool,
}

/// An attempt that is not over by then never will be.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// In a folder with a longer path the stage's socket would have a longer one than the kernel takes.
const STAGE_BYTES_MAX: usize = 66;

/// Finds the strongest fence that holds, by trying to break out of it, or reads what was found earlier.
/// Blocks: some 50 ms when it has to try.
pub fn measure(options: &Options) -> Measurement {
    let key = cache::key(options);
    if let (Some(file), Some(key)) = (&options.cache, &key)
        && let Some(found) = cache::read(file, key, options)
    {
        return found;
    }
    testbed::remove_stale(&options.scratch);
    testbed::remove_stale(stage_folder(options));
    let TrialResult {
        measurement: measured,
        is_verdict,
    } = try_all(options);
    if let (Some(file), Some(key), true) = (&options.cache, &key, is_verdict) {
        // Without it the next start measures again.
        let _ = cache::write(file, key, &measured);
    }
    measured
}

/// What was found, and whether it would be found again.
struct TrialResult {
    measurement: Measurement,
    is_verdict: bool,
}

/// Why a tier is not what it is said to be.
struct Shortfall {
    why: String,
    /// The machine had no room or no time just now.
    is_passing: bool,
}

fn try_all(options: &Options) -> TrialResult {
    let landlock = syscalls::landlock_version();
    let (mut short_of, mut is_verdict) = (Vec::new(), true);
    let mut held = None;
    for tier in [Tier::A, Tier::B] {
        let fence = sandbox_host(options, tier);
        match try_tier(&fence, options, landlock) {
            Ok(findings) => {
                held = Some((fence, findings));
                break;
            }
            Err(Shortfall { why, is_passing }) => {
                short_of.push(why);
                is_verdict &= !is_passing;
            }
        }
    }
    let (fence, findings) = held.unwrap_or_else(|| (sandbox_host(options, Tier::C), Vec::new()));
    let measured = Measurement {
        sandbox: fence,
        landlock,
        findings,
        short_of,
        cached: false,
    };
    TrialResult {
        measurement: measured,
        is_verdict,
    }
}

fn sandbox_host(options: &Options, tier: Tier) -> SandboxHost {
    let bubblewrap = options.bubblewrap.clone().unwrap_or_default();
    SandboxHost::new(tier, bubblewrap, options.helper.clone())
}

/// What became of the attempts, if the tier is what it is said to be; else why it is not.
fn try_tier(
    fence: &SandboxHost,
    options: &Options,
    landlock: i64,
) -> Result<Vec<Finding>, Shortfall> {
    let verdict = |why: String| Shortfall {
        why,
        is_passing: false,
    };
    match (fence.tier, &options.bubblewrap) {
        (Tier::A, Err(why)) => return Err(verdict(why.to_string())),
        (Tier::B, _) if landlock < 4 => {
            return Err(verdict(format!(
                "the kernel has Landlock version {landlock}, and 4 is needed (Linux 6.7, enabled at boot)"
            )));
        }
        _ => {}
    }
    let name = match fence.tier {
        Tier::A => "namespaces",
        _ => "Landlock alone",
    };
    let findings = attempt_all(fence, options).map_err(|short| Shortfall {
        why: format!("{name}: {}", short.why),
        ..short
    })?;
    for finding in &findings {
        let promised = fence.tier == Tier::A || finding.attempt.second_tier.stops(landlock);
        if promised && !finding.stopped {
            return Err(verdict(format!(
                "{name}: does not hold here: {}",
                finding.attempt.shows
            )));
        }
    }
    Ok(findings)
}

/// Where the stage is set: beside the cache, among the server's own files. Commands of another server may write `/tmp`,
/// and could change there what the attempts report.
fn stage_folder(options: &Options) -> &Path {
    let own = options.cache.as_deref().and_then(Path::parent);
    let own = own.filter(|it| it.as_os_str().len() <= STAGE_BYTES_MAX);
    let is_usable = |it: &&Path| {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(it);
        made.is_ok() && access(*it, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    own.filter(is_usable).unwrap_or(&options.scratch)
}

/// Sets the stage, sends the attempts in, and reads what they report.
fn attempt_all(fence: &SandboxHost, options: &Options) -> Result<Vec<Finding>, Shortfall> {
    let set = TestbedGuard::new(stage_folder(options))?;
    let stage = &set.testbed;
    let workspace = stage.workspace();
    let mut rules = SandboxRules::workspace_write(vec![workspace.clone()]);
    rules.read = ReadScope::Listed(Vec::new());
    if fence.tier == Tier::B {
        rules.protected.clear();
    }
    let mut args = vec![helper::ATTEMPTS.into()];
    args.extend(stage.words());
    let launch = Launch {
        program: fence.helper_path().into(),
        args,
        cwd: workspace.clone(),
        env: Vec::new(),
    };
    let fenced = fence
        .wrap(launch, &Policy::Confined(rules))
        .map_err(io::Error::other)?;

    let errors = stage.folder.join("errors");
    let keeper = KeeperCommand::of(options.helper.clone());
    let ended = process::run(&keeper, &fenced, &File::create(&errors)?, ATTEMPT_TIMEOUT)?;
    if ended.is_none() {
        return Err(io::Error::other("the attempts did not come to an end").into());
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

/// Whatever kept the attempts from being made may be gone the next time.
impl From<io::Error> for Shortfall {
    fn from(error: io::Error) -> Self {
        Self {
            why: error.to_string(),
            is_passing: true,
        }
    }
}

/// What the system says when it has no room just now. What bubblewrap was not allowed it will not be allowed
/// the next time.
const SHORTAGE_ERRORS: [&str; 5] = [
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "No space left on device",
    "Too many open files",
    "Disk quota exceeded",
];

/// Without a report, what was said on stderr is the reason: bubblewrap names what it was not allowed.
fn stderr_reason(errors: &Path) -> Shortfall {
    let text = fs::read_to_string(errors).unwrap_or_default();
    let line = text.lines().next();
    Shortfall {
        is_passing: line.is_none_or(|line| SHORTAGE_ERRORS.iter().any(|it| line.contains(it))),
        why: line
            .unwrap_or("the attempts ended without a report")
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_is_set_among_the_servers_own_files() {
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
            assert_eq!(stage_folder(&options), expected);
        }
    }
}
