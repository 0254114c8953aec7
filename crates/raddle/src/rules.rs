//! The rules of the operator's and the user's files, reloaded when the files change.

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

/// The variable that names an additional file of the operator. Its rules apply beside those of the
/// first, so it can only tighten. Unless only root can write the file, its rules that allow count
/// as the user's.
const MANAGED_PATH_VAR: &str = "RADDLE_MANAGED_POLICY";

/// The rules of a home. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RuleStore(Arc<RuleStoreInner>);

struct RuleStoreInner {
    files: Vec<RuleFile>,
    user: PathBuf,
    /// The folder that `~` stands for in the user's file.
    home: Option<PathBuf>,
    last: Mutex<Arc<LoadedRules>>,
}

/// The path of a rule file, and its layer.
struct RuleFile {
    path: PathBuf,
    layer: Layer,
    /// Whether its path was configured, so that a missing file is an error.
    named: bool,
}

/// The rules as last read.
struct LoadedRules {
    policy: Arc<Policy>,
    warnings: Vec<String>,
    stamps: Vec<RuleFileStamp>,
    /// Whether the files had not changed recently when they were read, so that their stamps reveal
    /// any later change.
    settled: bool,
}

/// Detects a change of a file: its time of modification, length and inode. A replacement may have
/// the same time and length.
type RuleFileStamp = Option<(SystemTime, u64, u64)>;

/// File systems have coarse timestamps, some of whole seconds: two changes in one tick look alike.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

impl std::fmt::Debug for RuleStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RuleStore")
    }
}

impl RuleStore {
    /// Reads all files. An unusable file is an error, so that the server never runs without its
    /// configured rules.
    pub(crate) fn open(home: &Home) -> Result<Self> {
        Self::of(Path::new(MANAGED), extra_managed_file(), &home.rules())
    }

    fn of(managed: &Path, extra: Option<PathBuf>, user: &Path) -> Result<Self> {
        let file = |path: PathBuf, layer, named| RuleFile { path, layer, named };
        let mut files = vec![file(managed.to_owned(), Layer::Managed, false)];
        files.extend(extra.map(|path| file(path, Layer::Managed, true)));
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

    /// Warnings about entries in the files that have no effect.
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
                inner.reload();
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

    /// Returns the current rules.
    fn fresh(&self) -> Arc<LoadedRules> {
        let last = self.last();
        if last.settled && last.stamps == stamps(&self.files) {
            return last;
        }
        self.reload()
    }

    /// Reads all files again. If one is unusable, the last rules stay in force.
    fn reload(&self) -> Arc<LoadedRules> {
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

/// The operator's additional file, if one is configured.
pub(crate) fn extra_managed_file() -> Option<PathBuf> {
    let named = std::env::var_os(MANAGED_PATH_VAR).filter(|it| !it.is_empty());
    named.map(PathBuf::from)
}

fn read_all(files: &[RuleFile], home: Option<&Path>) -> Result<LoadedRules> {
    // Stamped before reading: a change in between is detected the next time.
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
            other => other.with_context(|| {
                format!(
                    "cannot read the rules in {name}; make it a file that this user may read, or \
                     move it away"
                )
            })?,
        };
        let home = match file.layer {
            Layer::User => home,
            Layer::Managed => None,
        };
        let ParsedRules {
            policy: mut more,
            warnings: mut odd,
        } = parse(&text, file.layer, home)
            .with_context(|| format!("the rules cannot be used; correct them in {name}"))?;
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
