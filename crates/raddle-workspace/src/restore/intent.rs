//! The intent of a restore, stored before the first file is touched.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::{RestorePlan, RestoreStep};
use crate::store::{sync_folder_of, write_durably};
use crate::{ContentHash, EntryKind, Error, FileEntry, WorkspacePath};

/// Name of the file in the store.
const NAME: &str = "restore";

/// Which state all files shall have in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Direction {
    Forward,
    Back,
}

/// Everything that is needed to finish a restore or to undo it.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub direction: Direction,
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
            direction: Direction::Forward,
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
        store.join(NAME).exists()
    }

    /// Returns the stored intent, if a restore is under way.
    pub fn load(store: &Path) -> Result<Option<Self>, Error> {
        let path = store.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::disk(&path, error)),
        };
        let stored: Option<StoredIntent> = serde_json::from_slice(&bytes).ok();
        let intent = stored.and_then(StoredIntent::parse);
        intent
            .map(Some)
            .ok_or_else(|| Error::damaged(&path, "the intent cannot be read"))
    }

    pub fn store(&self, store: &Path) -> Result<(), Error> {
        let path = store.join(NAME);
        let json = serde_json::to_vec(&StoredIntent::new(self));
        let json = json.map_err(|it| Error::disk(&path, io::Error::from(it)))?;
        write_durably(&path, &json)
    }

    /// Removes the intent: the restore is complete.
    pub fn remove(store: &Path) -> Result<(), Error> {
        let path = store.join(NAME);
        fs::remove_file(&path).map_err(|it| Error::disk(&path, it))?;
        sync_folder_of(&path)
    }

    /// Returns the intent to undo this one.
    pub fn reversed(&self) -> Self {
        let direction = match self.direction {
            Direction::Forward => Direction::Back,
            Direction::Back => Direction::Forward,
        };
        Self {
            direction,
            ..self.clone()
        }
    }

    /// Returns the steps in the direction of the intent: from what, to what.
    pub fn directed_steps(&self) -> Vec<RestoreStep> {
        let steps = self.steps.iter().cloned();
        match self.direction {
            Direction::Forward => steps.collect(),
            Direction::Back => steps
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
        match self.direction {
            Direction::Forward => [&self.folders_before, &self.folders_after],
            Direction::Back => [&self.folders_after, &self.folders_before],
        }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredIntent {
    version: u32,
    direction: Direction,
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
            direction: intent.direction,
            staging: intent.staging.clone(),
            steps: intent.steps.iter().map(step).collect(),
            folders_before: folders(&intent.folders_before),
            folders_after: folders(&intent.folders_after),
        }
    }

    fn parse(self) -> Option<Intent> {
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
            direction: self.direction,
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
