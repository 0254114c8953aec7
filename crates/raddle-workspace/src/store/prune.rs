//! Pruning: removes old snapshots, and the contents that only they had.
//!
//! The newest snapshots are looked at first. What one snapshot shares with a newer one is known
//! then, so the work and the memory grow with the contents that stay, not with the snapshots.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Store, files, modified};
use crate::limits::DEPTH_MAX;
use crate::snapshot::{SnapshotRecord, decode_names};
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
            // Limit: age of the copies of files; beyond it, they are removed, once a day.
            age_max: Duration::from_secs(30 * 24 * 3600),
            // Limit: copies of the files of one workspace; beyond it, the oldest are removed, once a
            // day.
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
    /// Bytes of the store before.
    pub bytes_before: u64,
    /// Bytes of the store now.
    pub bytes_now: u64,
    /// Number of folders that were read.
    pub folders_read: u64,
}

/// Number of small packs from which a pruning joins them.
const PRUNED_PACKS_MAX: usize = 64;

/// Number of small packs from which they are joined without a pruning: each keeps a file open.
const PACKS_MAX: usize = 256;

/// Suffix of a store that is being removed.
const REMOVED: &str = ".removed";

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

    /// Bytes of all packs and snapshots.
    pub fn bytes(&self) -> u64 {
        let packs = self.packs.iter().flatten().map(|it| it.bytes);
        let snapshots = files::list(&self.snapshots_folder()).unwrap_or_default();
        let snapshots = snapshots.iter().filter_map(|it| fs::metadata(it).ok());
        packs.chain(snapshots.map(|it| it.len())).sum()
    }

    /// Removes snapshots beyond the limits, except those to `keep`, snapshots that cannot be read,
    /// and contents without snapshot.
    pub fn prune(
        &mut self,
        limits: &RetentionLimits,
        keep: &BTreeSet<SnapshotId>,
        now: SystemTime,
    ) -> Result<PruneReport, Error> {
        let bytes_before = self.bytes();
        let mut snapshots = self.snapshots()?;
        // Those to keep first, so that they count before any other; then the newest.
        snapshots.reverse();
        snapshots.sort_by_key(|it| !keep.contains(&it.id));
        let mut live = LiveContents::new(self);
        let mut removed = Vec::new();
        let mut is_full = false;
        for stored in snapshots {
            let is_kept = keep.contains(&stored.id);
            let age = now.duration_since(stored.taken).unwrap_or_default();
            let is_wanted = is_kept || age <= limits.age_max && !is_full;
            let is_live = is_wanted
                && match live.add(stored.id) {
                    Ok(()) => true,
                    Err(error @ (Error::Damaged { .. } | Error::NoContent(_))) => {
                        tracing::warn!(snapshot = %stored.id, %error, "a damaged snapshot is removed");
                        false
                    }
                    Err(error) => return Err(error),
                };
            is_full |= is_live && !is_kept && live.bytes() > limits.bytes_max;
            if is_live && (is_kept || !is_full) {
                live.accept();
            } else {
                live.reject();
                removed.push(stored.id);
            }
        }
        let (live, folders_read) = (live.contents, live.folders_read);
        removed.reverse();
        for id in &removed {
            self.remove_snapshot(*id)?;
        }
        self.sweep(&live, PRUNED_PACKS_MAX)?;
        Ok(PruneReport {
            removed,
            bytes_before,
            bytes_now: self.bytes(),
            folders_read,
        })
    }

    /// Removes the store. It is renamed first, so that a handle that waits for the lock finds either
    /// this store or none.
    pub fn remove(self) -> Result<(), Error> {
        let disk = |it| Error::disk(&self.folder, it);
        let mut removed = self.folder.clone().into_os_string();
        removed.push(REMOVED);
        let removed = PathBuf::from(removed);
        if removed.exists() {
            fs::remove_dir_all(&removed).map_err(disk)?;
        }
        fs::rename(&self.folder, &removed)
            .and_then(|()| fs::remove_dir_all(&removed))
            .map_err(disk)
    }

    fn remove_snapshot(&self, id: SnapshotId) -> Result<(), Error> {
        let path = self.snapshot_path(id);
        fs::remove_file(&path).map_err(|it| Error::disk(&path, it))
    }

    /// Joins the small packs if there are many.
    pub(super) fn join_packs(&mut self) -> Result<(), Error> {
        if self.small_packs() <= PACKS_MAX {
            return Ok(());
        }
        let all = self.index.keys().copied().collect();
        self.sweep(&all, PACKS_MAX)
    }

    fn small_packs(&self) -> usize {
        let packs = self.packs.iter().flatten();
        packs.filter(|it| it.bytes < SMALL_PACK_BYTES).count()
    }

    /// Copies the live contents of packs that are mostly dead, and of small ones if there are more
    /// than that, and removes those packs.
    fn sweep(&mut self, live: &HashSet<ContentHash>, small_max: usize) -> Result<(), Error> {
        let mut live_bytes = vec![0; self.packs.len()];
        for hash in live {
            if let Some((number, location)) = self.index.get(hash) {
                live_bytes[*number] += location.stored;
            }
        }
        let is_many = self.small_packs() > small_max;
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
        self.index.retain(|_, (number, _)| !dead.contains(number));
        if let Some(path) = &new {
            self.add_pack(path)?;
        }
        // The copies are durable, so the originals may go.
        for number in &dead {
            let Some(pack) = self.packs[*number].take() else {
                continue;
            };
            if new.as_ref() != Some(&pack.path) {
                fs::remove_file(&pack.path).map_err(|it| Error::disk(&pack.path, it))?;
            }
        }
        Ok(())
    }
}

/// The contents of the snapshots that stay.
struct LiveContents<'a> {
    store: &'a Store,
    contents: HashSet<ContentHash>,
    /// The folders whose contents are live. A file may have the bytes of a folder, so `contents`
    /// does not tell.
    folders: HashSet<ContentHash>,
    /// The contents that the last snapshot added, and whether each was added as a folder.
    added: Vec<(ContentHash, bool)>,
    /// Stored bytes of all contents.
    content_bytes: u64,
    /// Bytes of the records of accepted snapshots, and of the last one.
    record_bytes: [u64; 2],
    folders_read: u64,
}

impl<'a> LiveContents<'a> {
    fn new(store: &'a Store) -> Self {
        Self {
            store,
            contents: HashSet::new(),
            folders: HashSet::new(),
            added: Vec::new(),
            content_bytes: 0,
            record_bytes: [0, 0],
            folders_read: 0,
        }
    }

    /// Adds the contents of a snapshot, which is then accepted or rejected.
    fn add(&mut self, id: SnapshotId) -> Result<(), Error> {
        let SnapshotRecord { root, gaps, .. } = self.store.record(id)?;
        if !self.store.contains(&gaps) {
            return Err(Error::NoContent(gaps));
        }
        let metadata = fs::metadata(self.store.snapshot_path(id));
        self.record_bytes[1] = metadata.map_or(0, |it| it.len());
        self.content(gaps);
        self.folder(root, 0)
    }

    /// Bytes of the accepted snapshots and the last one.
    fn bytes(&self) -> u64 {
        self.content_bytes + self.record_bytes[0] + self.record_bytes[1]
    }

    fn accept(&mut self) {
        self.record_bytes = [self.record_bytes[0] + self.record_bytes[1], 0];
        self.added.clear();
    }

    /// Takes back what the last snapshot added.
    fn reject(&mut self) {
        self.record_bytes[1] = 0;
        for (hash, is_folder) in std::mem::take(&mut self.added) {
            if is_folder {
                self.folders.remove(&hash);
            } else if self.contents.remove(&hash) {
                self.content_bytes -= self.stored_bytes(&hash);
            }
        }
    }

    fn folder(&mut self, hash: ContentHash, depth: usize) -> Result<(), Error> {
        if !self.folders.insert(hash) {
            return Ok(());
        }
        self.added.push((hash, true));
        self.content(hash);
        self.folders_read += 1;
        let bytes = self.store.read(&hash)?;
        let names = decode_names(&bytes).filter(|_| depth <= DEPTH_MAX);
        let damaged = || Error::damaged(&self.store.folder, "a folder cannot be read");
        for (hash, is_folder) in names.ok_or_else(damaged)? {
            match is_folder {
                true => self.folder(hash, depth + 1)?,
                false => self.content(hash),
            }
        }
        Ok(())
    }

    fn content(&mut self, hash: ContentHash) {
        if self.contents.insert(hash) {
            self.added.push((hash, false));
            self.content_bytes += self.stored_bytes(&hash);
        }
    }

    fn stored_bytes(&self, hash: &ContentHash) -> u64 {
        let located = self.store.index.get(hash);
        located.map_or(0, |(_, it)| it.stored)
    }
}
