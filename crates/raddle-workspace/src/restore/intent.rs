//! The intent of a restore, stored before the first file is touched.
//!
//! Its file has the name of the phase. A rename needs no space, so a full disk does not keep a
//! restore from being undone.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::{RestorePlan, RestoreStep};
use crate::store::{sync_folder_of, write_durably};
use crate::{ContentHash, EntryKind, Error, FileEntry, WorkspacePath};

/// Progress of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// New files are written to the staging folder. No file of the user was replaced.
    Staging,
    /// Files are replaced.
    Forward,
    /// Files get back what they had.
    Back,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Staging, Self::Forward, Self::Back];

    /// Path of the intent in the store.
    fn path(self, store: &Path) -> PathBuf {
        store.join(match self {
            Self::Staging => "restore-staging",
            Self::Forward => "restore",
            Self::Back => "restore-back",
        })
    }
}

/// Everything that is needed to finish a restore or to undo it.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(super) phase: Phase,
    /// Name of the staging folder, which nobody can guess: a workspace may hold any folder.
    pub staging: String,
    pub steps: Vec<RestoreStep>,
    /// Folders that exist only before, with their modes.
    pub folders_before: Vec<(WorkspacePath, u32)>,
    /// Folders that exist only after.
    pub folders_after: Vec<(WorkspacePath, u32)>,
}

impl Intent {
    pub fn new(plan: &RestorePlan) -> Self {
        let pairs = |it: &std::collections::BTreeMap<WorkspacePath, u32>| {
            it.iter()
                .map(|(path, mode)| (path.clone(), *mode))
                .collect()
        };
        Self {
            phase: Phase::Staging,
            staging: format!(
                ".raddle-restore-{:016x}",
                RandomState::new().build_hasher().finish()
            ),
            steps: plan.steps.clone(),
            folders_before: pairs(&plan.folders_before),
            folders_after: pairs(&plan.folders_after),
        }
    }

    pub fn exists(store: &Path) -> bool {
        Phase::ALL.iter().any(|it| it.path(store).exists())
    }

    /// Returns the stored intent, if a restore is under way.
    pub fn load(store: &Path) -> Result<Option<Self>, Error> {
        for phase in Phase::ALL {
            let path = phase.path(store);
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::disk(&path, error)),
            };
            let stored: Option<StoredIntent> = serde_json::from_slice(&bytes).ok();
            let intent = stored.and_then(|it| it.parse(phase));
            let damaged = || Error::damaged(&path, "the intent cannot be read");
            return intent.map(Some).ok_or_else(damaged);
        }
        Ok(None)
    }

    pub fn store(&self, store: &Path) -> Result<(), Error> {
        let path = self.phase.path(store);
        let json = serde_json::to_vec(&StoredIntent::new(self));
        let json = json.map_err(|it| Error::disk(&path, io::Error::from(it)))?;
        write_durably(&path, &json)
    }

    /// Stores that the restore is in another phase, and returns the intent of it.
    pub(super) fn enter(&self, phase: Phase, store: &Path) -> Result<Self, Error> {
        let (from, to) = (self.phase.path(store), phase.path(store));
        let intent = Self {
            phase,
            ..self.clone()
        };
        match fs::rename(&from, &to) {
            Ok(()) => sync_folder_of(&to)?,
            // Its removal was not made durable.
            Err(error) if error.kind() == io::ErrorKind::NotFound => intent.store(store)?,
            Err(error) => return Err(Error::disk(&to, error)),
        }
        Ok(intent)
    }

    /// Removes the intent of any phase: the restore is complete, or was given up.
    pub fn remove(store: &Path) -> Result<(), Error> {
        for path in Phase::ALL.map(|it| it.path(store)) {
            match fs::remove_file(&path) {
                Ok(()) => sync_folder_of(&path)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::disk(&path, error)),
            }
        }
        Ok(())
    }

    /// Returns the steps in the direction of the intent: from what, to what.
    pub fn directed_steps(&self) -> Vec<RestoreStep> {
        let steps = self.steps.iter().cloned();
        match self.phase {
            Phase::Staging | Phase::Forward => steps.collect(),
            Phase::Back => steps
                .map(|it| RestoreStep {
                    path: it.path,
                    now: it.then,
                    then: it.now,
                })
                .collect(),
        }
    }

    /// Returns the folders to remove and those to make, in the direction of the intent.
    pub fn directed_folders(&self) -> [&[(WorkspacePath, u32)]; 2] {
        match self.phase {
            Phase::Staging | Phase::Forward => [&self.folders_before, &self.folders_after],
            Phase::Back => [&self.folders_after, &self.folders_before],
        }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredIntent {
    version: u32,
    staging: String,
    steps: Vec<StoredStep>,
    folders_before: Vec<(String, u32)>,
    folders_after: Vec<(String, u32)>,
}

#[derive(Serialize, Deserialize)]
struct StoredStep {
    path: String,
    now: Option<StoredEntry>,
    then: Option<StoredEntry>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry {
    is_link: bool,
    mode: u32,
    size: u64,
    hash: String,
}

const VERSION: u32 = 1;

impl StoredIntent {
    fn new(intent: &Intent) -> Self {
        let step = |it: &RestoreStep| StoredStep {
            path: text_of(&it.path),
            now: it.now.map(StoredEntry::new),
            then: it.then.map(StoredEntry::new),
        };
        let folders = |it: &[(WorkspacePath, u32)]| {
            it.iter()
                .map(|(path, mode)| (text_of(path), *mode))
                .collect()
        };
        Self {
            version: VERSION,
            staging: intent.staging.clone(),
            steps: intent.steps.iter().map(step).collect(),
            folders_before: folders(&intent.folders_before),
            folders_after: folders(&intent.folders_after),
        }
    }

    fn parse(self, phase: Phase) -> Option<Intent> {
        let entry = |it: Option<StoredEntry>| match it {
            Some(it) => it.parse().map(Some),
            None => Some(None),
        };
        let step = |it: StoredStep| {
            Some(RestoreStep {
                path: path_of(&it.path)?,
                now: entry(it.now)?,
                then: entry(it.then)?,
            })
        };
        let folders = |it: Vec<(String, u32)>| {
            let parsed = it
                .into_iter()
                .map(|(path, mode)| Some((path_of(&path)?, mode)));
            parsed.collect::<Option<Vec<_>>>()
        };
        Some(Intent {
            phase,
            staging: self.staging,
            steps: self.steps.into_iter().map(step).collect::<Option<_>>()?,
            folders_before: folders(self.folders_before)?,
            folders_after: folders(self.folders_after)?,
        })
        .filter(|it| self.version == VERSION && !it.staging.contains('/'))
    }
}

impl StoredEntry {
    fn new(entry: FileEntry) -> Self {
        Self {
            is_link: entry.kind == EntryKind::Symlink,
            mode: entry.mode,
            size: entry.size,
            hash: entry.hash.to_string(),
        }
    }

    fn parse(self) -> Option<FileEntry> {
        let kind = match self.is_link {
            true => EntryKind::Symlink,
            false => EntryKind::File,
        };
        Some(FileEntry {
            kind,
            mode: self.mode,
            size: self.size,
            hash: ContentHash::parse(&self.hash)?,
        })
    }
}

/// Paths need not be UTF-8, so they are stored in hexadecimal digits.
fn text_of(path: &WorkspacePath) -> String {
    HEXLOWER.encode(path.as_bytes())
}

fn path_of(text: &str) -> Option<WorkspacePath> {
    use std::os::unix::ffi::OsStringExt as _;
    let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
    WorkspacePath::new(std::ffi::OsString::from_vec(bytes))
}
