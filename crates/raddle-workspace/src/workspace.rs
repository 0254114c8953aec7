//! The handle of one workspace and its store.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::fstat;

use crate::opened::open_workspace;
use crate::scan::{IgnoreFiles, ScanResult, Scanner};
use crate::snapshot::FolderNode;
use crate::store::{LOCK_TIMEOUT, OnBusy, Store};
use crate::{
    ContentHash, Error, Gap, GapReason, PruneReport, RetentionLimits, Snapshot, SnapshotId,
    SnapshotLimits, StoredSnapshot, WorkspacePath,
};

/// Number of files read since the stamps were stored, from which they are stored again. Fewer are
/// read again after a crash, which costs less than to write the stamps of all files.
const STAMPS_FILES: u64 = 256;

/// A workspace and its store. The store has a lock, so that one handle at a time uses it.
///
/// ```
/// # use raddle_workspace::{SnapshotLimits, Workspace};
/// # let at = tempfile::tempdir()?;
/// # let real = at.path().canonicalize()?;
/// # let (folder, store) = (real.join("project"), real.join("store"));
/// # std::fs::create_dir(&folder)?;
/// let mut workspace = Workspace::open(&folder, &store, SnapshotLimits::default())?;
/// let before = workspace.snapshot(&Default::default())?;
/// std::fs::write(folder.join("notes.txt"), "hello\n")?;
/// let after = workspace.snapshot(&Default::default())?;
/// let diff = workspace.diff(&before, &after)?;
/// assert_eq!(diff.files.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Workspace {
    pub(crate) root: OwnedFd,
    pub(crate) store: Store,
    pub(crate) store_folder: (u64, u64),
    pub(crate) limits: SnapshotLimits,
    ignore_files: IgnoreFiles,
    /// The last walk, with the stamps that it saw.
    last: Option<Arc<FolderNode>>,
    /// Number of files that were read since the stamps were stored.
    unsaved: u64,
    files_read: u64,
}

impl Workspace {
    /// Opens a folder, and the store in which its snapshots are. The store is created if there is
    /// none; nobody but the user can read it. It holds copies of the user's files.
    ///
    /// Fails with [`Error::Busy`] while another handle has the lock, and with [`Error::Link`] if a
    /// component of the folder's path is a symbolic link: one that took the place of a folder would
    /// lead a restore elsewhere. Callers pass the canonical path.
    pub fn open(folder: &Path, store: &Path, limits: SnapshotLimits) -> Result<Self, Error> {
        Self::open_as(folder, store, limits, OnBusy::Fail)
    }

    /// As [`Workspace::open`], but waits until no other handle has the lock, at most a minute. It may
    /// take as long as another process takes for its first snapshot.
    pub fn open_waiting(
        folder: &Path,
        store: &Path,
        limits: SnapshotLimits,
    ) -> Result<Self, Error> {
        Self::open_as(folder, store, limits, OnBusy::Wait(LOCK_TIMEOUT))
    }

    fn open_as(
        folder: &Path,
        store: &Path,
        limits: SnapshotLimits,
        on_busy: OnBusy,
    ) -> Result<Self, Error> {
        let at_folder = |it: io::Error| Error::disk(folder, it);
        let root = open_workspace(folder)?;
        let real_folder = fs::canonicalize(folder).map_err(at_folder)?;
        let opened = Store::open(store, on_busy)?;
        let at_store = |it: io::Error| Error::disk(store, it);
        let real_store = fs::canonicalize(store).map_err(at_store)?;
        if real_folder.starts_with(&real_store) {
            return Err(Error::Nested(real_store));
        }
        let handle = File::open(&real_store).map_err(at_store)?;
        let stat = fstat(&handle).map_err(|it| at_store(it.into()))?;
        let last = opened.stamps();
        Ok(Self {
            root,
            store: opened,
            store_folder: (stat.st_dev, stat.st_ino),
            limits,
            ignore_files: IgnoreFiles::default(),
            last,
            unsaved: 0,
            files_read: 0,
        })
    }

    /// Releases the lock of the store. Call [`Workspace::lock`] before anything else.
    pub fn unlock(&self) -> Result<(), Error> {
        self.store.unlock()
    }

    /// Waits for the lock of the store, and reads what other handles changed meanwhile.
    pub fn lock(&mut self) -> Result<(), Error> {
        if self.store.lock()? {
            self.last = self.last.take().filter(|it| self.store.has_all(it));
        }
        Ok(())
    }

    /// Returns a snapshot that covers nothing. [`Workspace::update`] adds paths to it without a walk.
    pub fn not_visited(&self) -> Snapshot {
        let (root, _) = FolderNode::new(Vec::new());
        let gap = Gap {
            path: None,
            reason: GapReason::NotVisited,
        };
        Snapshot::new(Arc::new(root), vec![gap], BTreeSet::new())
    }

    /// Stores a snapshot that was composed of stored ones.
    pub fn keep(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.store.put_snapshot(snapshot, None)
    }

    /// Takes a snapshot of the whole folder. Named paths are covered although ignored: a caller
    /// names what it is about to write before it writes it.
    pub fn snapshot(&mut self, named: &BTreeSet<WorkspacePath>) -> Result<Snapshot, Error> {
        self.refuse_interrupted()?;
        let scanner = Scanner::new(
            &self.store,
            self.store_folder,
            &self.limits,
            named,
            &mut self.ignore_files,
        );
        let scanned = scanner.scan(&self.root, self.last.as_ref())?;
        self.last = Some(Arc::clone(&scanned.root));
        self.store_scan(scanned, Vec::new(), named.clone())
    }

    /// Takes a snapshot that differs from an earlier one at these paths alone. It looks at nothing
    /// else, so its cost does not grow with the workspace.
    pub fn update(
        &mut self,
        base: &Snapshot,
        paths: &BTreeSet<WorkspacePath>,
    ) -> Result<Snapshot, Error> {
        self.refuse_interrupted()?;
        let scanner = Scanner::new(
            &self.store,
            self.store_folder,
            &self.limits,
            paths,
            &mut self.ignore_files,
        );
        let scanned = scanner.revisit(&self.root, &base.root)?;
        if self
            .last
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, &base.root))
        {
            self.last = Some(Arc::clone(&scanned.root));
        }
        let named = base.named.union(paths).cloned().collect();
        let is_seen_again = |gap: &Gap| {
            let gap = gap.path.as_ref();
            gap.is_some_and(|gap| paths.iter().any(|it| gap.is_within(it)))
        };
        let gaps = base.gaps.iter().filter(|it| !is_seen_again(it));
        self.store_scan(scanned, gaps.cloned().collect(), named)
    }

    fn store_scan(
        &mut self,
        scanned: ScanResult,
        mut gaps: Vec<Gap>,
        named: BTreeSet<WorkspacePath>,
    ) -> Result<Snapshot, Error> {
        gaps.extend(scanned.gaps);
        let snapshot = Snapshot::new(scanned.root, gaps, named);
        self.store.put_snapshot(&snapshot, scanned.pack)?;
        self.files_read = scanned.files_read;
        self.unsaved += scanned.files_read;
        if self.unsaved >= STAMPS_FILES {
            self.save_stamps()?;
        }
        Ok(snapshot)
    }

    fn save_stamps(&mut self) -> Result<(), Error> {
        match &self.last {
            Some(root) if self.unsaved > 0 => self.store.put_stamps(root)?,
            _ => {}
        }
        self.unsaved = 0;
        Ok(())
    }

    /// Returns a stored snapshot.
    pub fn load(&self, id: SnapshotId) -> Result<Snapshot, Error> {
        self.store.snapshot(id)
    }

    /// Reports whether a snapshot is stored. It is not read.
    pub fn has(&self, id: SnapshotId) -> bool {
        self.store.has_snapshot(id)
    }

    /// Lists the stored snapshots, oldest first.
    pub fn snapshots(&self) -> Result<Vec<StoredSnapshot>, Error> {
        self.store.snapshots()
    }

    /// Returns a content of a snapshot.
    pub fn content(&self, hash: &ContentHash) -> Result<Vec<u8>, Error> {
        self.store.read(hash)
    }

    /// Reports whether a content is stored; contents that no snapshot has may be pruned.
    pub fn has_content(&self, hash: &ContentHash) -> bool {
        self.store.contains(hash)
    }

    /// Number of files whose content the last snapshot read; the stamps of the others proved them
    /// unchanged.
    pub fn files_read(&self) -> u64 {
        self.files_read
    }

    /// Number of bytes of all stored contents and snapshots.
    pub fn stored_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// Removes snapshots that exceed the limits, except those to `keep`.
    pub fn prune(
        &mut self,
        limits: &RetentionLimits,
        keep: &BTreeSet<SnapshotId>,
        now: SystemTime,
    ) -> Result<PruneReport, Error> {
        self.refuse_interrupted()?;
        let report = self.store.prune(limits, keep, now)?;
        // Contents of the last walk may be gone; the next one reads what it needs.
        self.last = self.last.take().filter(|it| self.store.has_all(it));
        Ok(report)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Err(error) = self.save_stamps() {
            tracing::warn!(%error, "the stamps of files are not stored; the next start reads all files again");
        }
    }
}
