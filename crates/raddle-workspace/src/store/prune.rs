//! Pruning: removes old snapshots, and the contents that only they had.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::time::{Duration, SystemTime};

use super::{Store, files, modified};
use crate::snapshot::{FolderNode, Node};
use crate::{ContentHash, Error, SnapshotId};

/// Limits of what a store holds.
#[derive(Clone, Copy, Debug)]
pub struct RetentionLimits {
    /// Snapshots that are older are removed.
    pub age_max: Duration,
    /// The oldest snapshots are removed until the store has no more bytes.
    pub bytes_max: u64,
}

impl Default for RetentionLimits {
    fn default() -> Self {
        Self {
            age_max: Duration::from_secs(30 * 24 * 3600),
            bytes_max: 5 << 30,
        }
    }
}

/// A snapshot in the store.
#[derive(Clone, Copy, Debug)]
pub struct StoredSnapshot {
    /// Its name.
    pub id: SnapshotId,
    /// When it was taken last.
    pub taken: SystemTime,
}

/// Result of a pruning.
#[derive(Clone, Debug, Default)]
pub struct PruneReport {
    /// The removed snapshots, oldest first.
    pub removed: Vec<SnapshotId>,
    /// Bytes of the contents before.
    pub bytes_before: u64,
    /// Bytes of the contents now.
    pub bytes_now: u64,
}

/// Number of packs from which the small ones are joined.
const PACKS_MAX: usize = 64;

/// Packs below this size are joined.
const SMALL_PACK_BYTES: u64 = 16 << 20;

impl Store {
    /// Lists the snapshots, oldest first.
    pub fn snapshots(&self) -> Result<Vec<StoredSnapshot>, Error> {
        let mut snapshots = Vec::new();
        for path in files::list(&self.snapshots_folder())? {
            let name = path.file_name().and_then(|it| it.to_str());
            let Some(hash) = name.and_then(ContentHash::parse) else {
                continue;
            };
            let metadata = fs::metadata(&path).map_err(|it| Error::disk(&path, it))?;
            snapshots.push(StoredSnapshot {
                id: SnapshotId(hash),
                taken: modified(&metadata),
            });
        }
        snapshots.sort_by_key(|it| (it.taken, it.id));
        Ok(snapshots)
    }

    /// Bytes of all packs.
    pub fn bytes(&self) -> u64 {
        self.packs.iter().flatten().map(|it| it.bytes).sum()
    }

    /// Removes snapshots beyond the limits, except those to `keep`, and contents without snapshot.
    pub fn prune(
        &mut self,
        limits: &RetentionLimits,
        keep: &BTreeSet<SnapshotId>,
        now: SystemTime,
    ) -> Result<PruneReport, Error> {
        let mut report = PruneReport {
            bytes_before: self.bytes(),
            ..PruneReport::default()
        };
        let mut live = HashMap::new();
        let mut rest = Vec::new();
        for stored in self.snapshots()? {
            let age = now.duration_since(stored.taken).unwrap_or_default();
            if age > limits.age_max && !keep.contains(&stored.id) {
                self.remove_snapshot(stored.id)?;
                report.removed.push(stored.id);
                continue;
            }
            let contents = self.contents_of(stored.id)?;
            for hash in &contents {
                *live.entry(*hash).or_insert(0u32) += 1;
            }
            rest.push((stored.id, contents));
        }
        let stored_bytes = |store: &Self, live: &HashMap<ContentHash, u32>| -> u64 {
            let locations = live.keys().filter_map(|it| store.index.get(it));
            locations.map(|(_, it)| it.stored).sum()
        };
        let mut bytes = stored_bytes(self, &live);
        for (id, contents) in rest {
            if bytes <= limits.bytes_max {
                break;
            }
            if keep.contains(&id) {
                continue;
            }
            self.remove_snapshot(id)?;
            report.removed.push(id);
            for hash in contents {
                if let Some(count) = live.get_mut(&hash) {
                    *count -= 1;
                    if *count == 0 {
                        live.remove(&hash);
                    }
                }
            }
            bytes = stored_bytes(self, &live);
        }
        self.sweep(&live.into_keys().collect())?;
        report.bytes_now = self.bytes();
        Ok(report)
    }

    fn remove_snapshot(&self, id: SnapshotId) -> Result<(), Error> {
        let path = self.snapshot_path(id);
        fs::remove_file(&path).map_err(|it| Error::disk(&path, it))
    }

    fn contents_of(&self, id: SnapshotId) -> Result<HashSet<ContentHash>, Error> {
        let mut contents = HashSet::new();
        collect(&self.snapshot(id)?.root, &mut contents);
        Ok(contents)
    }

    /// Copies the live contents of packs that are mostly dead or small, and removes those packs.
    fn sweep(&mut self, live: &HashSet<ContentHash>) -> Result<(), Error> {
        let mut live_bytes = vec![0; self.packs.len()];
        for hash in live {
            if let Some((number, location)) = self.index.get(hash) {
                live_bytes[*number] += location.stored;
            }
        }
        let is_many = self.packs.len() > PACKS_MAX;
        let packs = self.packs.iter().enumerate();
        let dead = packs.filter_map(|(number, pack)| {
            let bytes = pack.as_ref()?.bytes;
            let is_wasteful = live_bytes[number] < bytes / 2;
            (is_wasteful || is_many && bytes < SMALL_PACK_BYTES).then_some(number)
        });
        let dead: HashSet<usize> = dead.collect();
        let mut writer = self.writer()?;
        let mut moved: Vec<_> = self.index.iter().collect();
        moved.retain(|(hash, (number, _))| dead.contains(number) && live.contains(*hash));
        moved.sort_by_key(|(_, (number, location))| (*number, location.offset));
        for (hash, (number, location)) in moved {
            if let Some(pack) = &self.packs[*number] {
                writer.put_stored(*hash, location, &mut pack.stored(location))?;
            }
        }
        let new = writer.finish()?;
        // The copies are durable, so the originals may go.
        for number in &dead {
            let Some(pack) = self.packs[*number].take() else {
                continue;
            };
            if new.as_ref() != Some(&pack.path) {
                fs::remove_file(&pack.path).map_err(|it| Error::disk(&pack.path, it))?;
            }
        }
        self.index.retain(|_, (number, _)| !dead.contains(number));
        match new {
            Some(path) => self.add_pack(&path),
            None => Ok(()),
        }
    }
}

fn collect(folder: &FolderNode, contents: &mut HashSet<ContentHash>) {
    if !contents.insert(folder.hash) {
        return;
    }
    for item in &folder.items {
        match &item.node {
            Node::Leaf(entry) => {
                contents.insert(entry.hash);
            }
            Node::Folder { folder, .. } => collect(folder, contents),
        }
    }
}
