//! The rules that people wrote down: the operator's and the user's files, read again when they change.

mod owner;
mod read;
mod write;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use raddle_core::policy::{Amendment, Layer, Policy};
use raddle_core::ports::{AmendError, BoxFuture, Rulebook};

use crate::home::Home;

pub(crate) use read::{ParsedRules, parse};

/// The operator's file.
const MANAGED: &str = "/etc/raddle/policy.toml";

/// Names a further file of the operator's. What it says holds beside the first, so it can only tighten; unless
/// nobody but the operator can have written it, its rules that allow are the user's.
const MANAGED_PATH_VAR: &str = "RADDLE_MANAGED_POLICY";

/// The rules of a home. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RuleStore(Arc<RuleStoreInner>);

struct RuleStoreInner {
    files: Vec<RuleFile>,
    user: PathBuf,
    /// What `~` means in the user's file.
    home: Option<PathBuf>,
    last: Mutex<Arc<LoadedRules>>,
}

/// Where rules stand, and whose they are.
struct RuleFile {
    path: PathBuf,
    layer: Layer,
    /// Whether it was asked for by name, so that it must be there.
    named: bool,
}

/// The rules as they were last read.
struct LoadedRules {
    policy: Arc<Policy>,
    warnings: Vec<String>,
    stamps: Vec<RuleFileStamp>,
    /// Whether the files had rested before they were read, so that their stamps tell any later change.
    settled: bool,
}

/// Tells whether a file has changed since it was read: when it was written, how long it is, and which file it is. One
/// that was put in its place may have kept the other two.
type RuleFileStamp = Option<(SystemTime, u64, u64)>;

/// File systems tell time in ticks, some in whole seconds: two changes within one tick look alike.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

impl std::fmt::Debug for RuleStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rules")
    }
}

impl RuleStore {
    /// Reads all files. One that cannot be used is an error, so that nobody works without rules that were
    /// written down.
    pub(crate) fn open(home: &Home) -> Result<Self> {
        Self::of(Path::new(MANAGED), extra_managed_file(), &home.rules())
    }

    fn of(managed: &Path, too: Option<PathBuf>, user: &Path) -> Result<Self> {
        let file = |path: PathBuf, layer, named| RuleFile { path, layer, named };
        let mut files = vec![file(managed.to_owned(), Layer::Managed, false)];
        files.extend(too.map(|path| file(path, Layer::Managed, true)));
        files.push(file(user.to_owned(), Layer::User, false));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|it| it.is_absolute());
        let last = read_all(&files, home.as_deref())?;
        Ok(Self(Arc::new(RuleStoreInner {
            files,
            user: user.to_owned(),
            home,
            last: Mutex::new(Arc::new(last)),
        })))
    }

    /// What is in the files and has no meaning.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.0.last().warnings.clone()
    }
}

impl Rulebook for RuleStore {
    fn policy(&self) -> Arc<Policy> {
        self.0.fresh().policy.clone()
    }

    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let work = tokio::task::spawn_blocking(move || {
                write::add(&inner.user, &amendment)?;
                inner.again();
                Ok(())
            });
            let failed = |it: tokio::task::JoinError| AmendError::Unwritable(it.to_string());
            work.await.map_err(failed)?
        })
    }
}

impl RuleStoreInner {
    fn last(&self) -> Arc<LoadedRules> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    /// The rules as they are now.
    fn fresh(&self) -> Arc<LoadedRules> {
        let last = self.last();
        if last.settled && last.stamps == stamps(&self.files) {
            return last;
        }
        self.again()
    }

    /// Reads all files again. If one has become unusable, what was read before stays in force.
    fn again(&self) -> Arc<LoadedRules> {
        match read_all(&self.files, self.home.as_deref()) {
            Ok(read) => {
                let read = Arc::new(read);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = read.clone();
                read
            }
            Err(error) => {
                tracing::warn!("the rules as last read stay in force: {error:#}");
                self.last()
            }
        }
    }
}

/// The further file of the operator's, if there is one.
pub(crate) fn extra_managed_file() -> Option<PathBuf> {
    let named = std::env::var_os(MANAGED_PATH_VAR).filter(|it| !it.is_empty());
    named.map(PathBuf::from)
}

fn read_all(files: &[RuleFile], home: Option<&Path>) -> Result<LoadedRules> {
    // Stamped before reading: a change in between is seen the next time.
    let stamps = stamps(files);
    let now = SystemTime::now();
    let has_rested = |it: &(SystemTime, u64, u64)| {
        now.duration_since(it.0)
            .is_ok_and(|age| age > TIMESTAMP_GRANULARITY)
    };
    let settled = stamps.iter().flatten().all(has_rested);
    let mut policy = Policy::default();
    let mut warnings = Vec::new();
    for file in files {
        let name = file.path.display();
        let text = match std::fs::read_to_string(&file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !file.named => continue,
            other => other.with_context(|| format!("cannot read {name}"))?,
        };
        let home = match file.layer {
            Layer::User => home,
            Layer::Managed => None,
        };
        let ParsedRules {
            policy: mut more,
            warnings: mut odd,
        } = parse(&text, file.layer, home).with_context(|| format!("in {name}"))?;
        if file.named && !raddle_sandbox::is_owned_by_root(&file.path) {
            odd.extend(owner::disown(&mut more.rules));
        }
        policy.rules.extend(more.rules);
        policy.managed = std::mem::take(&mut policy.managed).and(more.managed);
        policy.unattended = policy.unattended.or(more.unattended);
        warnings.extend(odd.into_iter().map(|it| format!("{it}, in {name}")));
    }
    Ok(LoadedRules {
        policy: Arc::new(policy),
        warnings,
        stamps,
        settled,
    })
}

fn stamps(files: &[RuleFile]) -> Vec<RuleFileStamp> {
    let stamp = |file: &RuleFile| {
        let about = std::fs::metadata(&file.path).ok()?;
        Some((about.modified().ok()?, about.len(), about.ino()))
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests;
