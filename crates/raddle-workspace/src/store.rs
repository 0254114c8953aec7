//! The store of one workspace: contents, folders and snapshots, named by hash.
//!
//! ```text
//! lock              held while the store is used
//! packs/HASH.pack   the contents that one snapshot added
//! snapshots/HASH    hashes of the root and the gaps of a snapshot, and its named paths; its time
//!                   is that of the file
//! stamps            the cache of stamps; may be lost
//! restore*          the intent of a restore under way, named for its phase
//! ```
//!
//! A file is written under a temporary name, synchronised, and renamed. So a reader sees all of it
//! or nothing, and a snapshot is never seen before its contents.

mod files;
mod pack;
mod prune;

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub(crate) use files::{sync_folder_of, write_durably};
pub(crate) use pack::PackWriter;
pub use prune::{PruneReport, RetentionLimits, StoredSnapshot};

use crate::snapshot::{
    FolderNode, Node, SnapshotRecord, decode_cache, decode_folder, decode_gaps, decode_record,
    encode_cache, encode_folder, encode_gaps,
};
use crate::{ContentHash, Error, Snapshot, SnapshotId};
use files::{create_folder, create_private};
use pack::{Location, OpenPack, Packing};

/// Name of the folder of snapshots.
const SNAPSHOTS: &str = "snapshots";

/// Folders of a store.
const FOLDERS: [&str; 2] = ["packs", SNAPSHOTS];

/// Limit: wait for the store of a workspace that another process uses; beyond it, the tool runs without
/// a checkpoint, or the restore fails.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two attempts to lock a store. The system call has no deadline.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Reaction to a store that another handle has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnBusy {
    /// Fail with [`Error::Busy`].
    Fail,
    /// Wait, and fail with [`Error::Busy`] after this time. A handle keeps the lock only while it
    /// works.
    Wait(Duration),
}

/// Whether a store has a snapshot. It is not locked for that, and its contents are not checked.
pub fn has_snapshot(store: &Path, id: SnapshotId) -> bool {
    store.join(SNAPSHOTS).join(id.to_string()).is_file()
}

/// The store of one workspace. The handle that has its lock may use it.
pub(crate) struct Store {
    folder: PathBuf,
    packs: Vec<Option<OpenPack>>,
    index: HashMap<ContentHash, (usize, Location)>,
    /// The lock is released when this file is closed.
    lock: File,
}

impl Store {
    pub fn open(folder: &Path, on_busy: OnBusy) -> Result<Self, Error> {
        let lock = lock_of(folder, on_busy)?;
        let mut store = Self {
            folder: folder.to_owned(),
            packs: Vec::new(),
            index: HashMap::new(),
            lock,
        };
        for name in FOLDERS {
            files::remove_temporary(&folder.join(name))?;
        }
        files::remove_temporary(folder)?;
        for path in files::list(&store.packs_folder())? {
            store.add_pack(&path)?;
        }
        Ok(store)
    }

    /// Releases the lock: other handles may use the store until [`Store::lock`].
    pub fn unlock(&self) -> Result<(), Error> {
        flock(&self.lock, FlockOperation::Unlock).map_err(|it| Error::disk(&self.folder, it))
    }

    /// Waits for the lock, at most [`LOCK_TIMEOUT`], and reads what other handles changed meanwhile. Reports whether contents
    /// are gone.
    pub fn lock(&mut self) -> Result<bool, Error> {
        let wait = OnBusy::Wait(LOCK_TIMEOUT);
        take(&self.lock, &self.folder, wait)?;
        if !is_lock_of(&self.lock, &self.folder) {
            self.lock = lock_of(&self.folder, wait)?;
        }
        let paths = files::list(&self.packs_folder())?;
        let mut is_gone = false;
        for (number, pack) in self.packs.iter_mut().enumerate() {
            if pack.as_ref().is_some_and(|it| !paths.contains(&it.path)) {
                *pack = None;
                self.index.retain(|_, (at, _)| *at != number);
                is_gone = true;
            }
        }
        for path in paths {
            let mut known = self.packs.iter().flatten();
            if !known.any(|it| it.path == path) {
                self.add_pack(&path)?;
            }
        }
        Ok(is_gone)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn packs_folder(&self) -> PathBuf {
        self.folder.join("packs")
    }

    fn snapshots_folder(&self) -> PathBuf {
        self.folder.join(SNAPSHOTS)
    }

    fn add_pack(&mut self, path: &Path) -> Result<(), Error> {
        let (pack, entries) = OpenPack::open(path)?;
        let number = self.packs.len();
        self.packs.push(Some(pack));
        for (hash, location) in entries {
            self.index.entry(hash).or_insert((number, location));
        }
        Ok(())
    }

    pub fn contains(&self, hash: &ContentHash) -> bool {
        self.index.contains_key(hash)
    }

    /// Starts a pack. Nothing of it can be read before [`Store::commit`].
    pub fn writer(&self) -> Result<PackWriter, Error> {
        PackWriter::new(&self.packs_folder())
    }

    /// Makes the contents of a pack durable and readable.
    fn commit(&mut self, writer: PackWriter) -> Result<(), Error> {
        let Some(path) = writer.finish()? else {
            return Ok(());
        };
        self.add_pack(&path)?;
        if let Err(error) = self.join_packs() {
            tracing::warn!(%error, "small packs are not joined; each keeps a file open");
        }
        Ok(())
    }

    /// Stores a content, and returns its hash.
    pub fn put(&mut self, content: &[u8]) -> Result<ContentHash, Error> {
        let hash = ContentHash::of(content);
        if !self.contains(&hash) {
            let mut writer = self.writer()?;
            writer.put(hash, content)?;
            self.commit(writer)?;
        }
        Ok(hash)
    }

    /// Stores contents of another store.
    pub fn import(&mut self, from: &Self, hashes: &BTreeSet<ContentHash>) -> Result<(), Error> {
        let mut writer = self.writer()?;
        for hash in hashes.iter().filter(|it| !self.contains(it)) {
            writer.put(*hash, &from.read(hash)?)?;
        }
        self.commit(writer)
    }

    /// Returns a content, after a check of its hash.
    pub fn read(&self, hash: &ContentHash) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.copy(hash, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a content, and checks its hash at the end.
    pub fn copy(&self, hash: &ContentHash, to: &mut impl Write) -> Result<(), Error> {
        let (pack, location) = self.locate(hash)?;
        let damaged = |_| Error::damaged(&pack.path, "a content cannot be unpacked");
        let stored = pack.stored(location);
        let mut checked = HashingWriter::new(to);
        let copied = match location.packing {
            Packing::Plain => io::copy(&mut { stored }, &mut checked),
            Packing::Zstd => {
                let mut unpacked = zstd::stream::read::Decoder::new(stored).map_err(damaged)?;
                // A damaged frame must not unpack without end.
                io::copy(&mut (&mut unpacked).take(location.size + 1), &mut checked)
            }
        };
        if let Some(error) = checked.error.take() {
            return Err(Error::disk(&self.folder, error));
        }
        copied.map_err(damaged)?;
        match checked.hash() == *hash {
            true => Ok(()),
            false => Err(Error::damaged(&pack.path, "a content has another hash")),
        }
    }

    fn locate(&self, hash: &ContentHash) -> Result<(&OpenPack, &Location), Error> {
        let known = self.index.get(hash);
        let located = known.and_then(|(number, it)| Some((self.packs[*number].as_ref()?, it)));
        located.ok_or(Error::NoContent(*hash))
    }

    /// Stores a snapshot with its folders and gaps. The contents of its files are stored, or in the
    /// pack.
    pub fn put_snapshot(
        &mut self,
        snapshot: &Snapshot,
        mut pack: Option<PackWriter>,
    ) -> Result<(), Error> {
        self.add_folder(&mut pack, &snapshot.root)?;
        let gaps = || encode_gaps(&snapshot.gaps);
        self.add_content(&mut pack, snapshot.gaps_hash, gaps)?;
        if let Some(pack) = pack {
            self.commit(pack)?;
        }
        let path = self.snapshot_path(snapshot.id);
        if !path.exists() {
            write_durably(&path, &snapshot.encode())?;
        }
        // An equal snapshot has its age renewed, and costs nothing else.
        let renewed = File::open(&path).and_then(|it| it.set_modified(SystemTime::now()));
        renewed.map_err(|it| Error::disk(&path, it))
    }

    /// Adds a folder and those in it to a pack, unless they are stored or in the pack.
    fn add_folder(&self, pack: &mut Option<PackWriter>, folder: &FolderNode) -> Result<(), Error> {
        if !self.add_content(pack, folder.hash, || encode_folder(&folder.items))? {
            return Ok(());
        }
        for item in &folder.items {
            if let Node::Folder { folder, .. } = &item.node {
                self.add_folder(pack, folder)?;
            }
        }
        Ok(())
    }

    /// Adds a content to a pack, unless it is stored or in the pack. Reports whether it was added.
    fn add_content(
        &self,
        pack: &mut Option<PackWriter>,
        hash: ContentHash,
        content: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, Error> {
        if self.contains(&hash) || pack.as_ref().is_some_and(|it| it.contains(&hash)) {
            return Ok(false);
        }
        let writer = match pack.take() {
            Some(writer) => writer,
            None => self.writer()?,
        };
        pack.insert(writer).put(hash, &content())?;
        Ok(true)
    }

    fn snapshot_path(&self, id: SnapshotId) -> PathBuf {
        self.snapshots_folder().join(id.to_string())
    }

    pub fn has_snapshot(&self, id: SnapshotId) -> bool {
        self.snapshot_path(id).exists()
    }

    pub fn snapshot(&self, id: SnapshotId) -> Result<Snapshot, Error> {
        let SnapshotRecord { root, gaps, named } = self.record(id)?;
        let damaged = || Error::damaged(&self.folder, "a list of gaps cannot be read");
        let gaps = decode_gaps(&self.read(&gaps)?).ok_or_else(damaged)?;
        Ok(Snapshot::new(self.folder_node(root, 0)?, gaps, named))
    }

    fn record(&self, id: SnapshotId) -> Result<SnapshotRecord, Error> {
        let path = self.snapshot_path(id);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoSnapshot(id));
            }
            Err(error) => return Err(Error::disk(&path, error)),
        };
        let damaged = || Error::damaged(&path, "it is no snapshot");
        if SnapshotId(ContentHash::of(&bytes)) != id {
            return Err(damaged());
        }
        decode_record(&bytes).ok_or_else(damaged)
    }

    fn folder_node(&self, hash: ContentHash, depth: usize) -> Result<Arc<FolderNode>, Error> {
        let damaged = || Error::damaged(&self.folder, "a folder cannot be read");
        if depth > crate::limits::DEPTH_MAX {
            return Err(damaged());
        }
        let bytes = self.read(&hash)?;
        let decoded = decode_folder(hash, &bytes, |it| self.folder_node(it, depth + 1))?;
        decoded.map(Arc::new).ok_or_else(damaged)
    }

    /// Returns the cached stamps; `None` if there are none, or they are damaged or outdated.
    pub fn stamps(&self) -> Option<Arc<FolderNode>> {
        let bytes = fs::read(self.folder.join("stamps")).ok()?;
        let root = decode_cache(&bytes)?;
        self.has_all(&root).then(|| Arc::new(root))
    }

    /// Reports whether all contents of a folder are stored.
    pub fn has_all(&self, folder: &FolderNode) -> bool {
        self.contains(&folder.hash)
            && folder.items.iter().all(|it| match &it.node {
                Node::Leaf(entry) => self.contains(&entry.hash),
                Node::Folder { folder, .. } => self.has_all(folder),
            })
    }

    /// Stores the stamps. They are not synchronised: without them, files are read again.
    pub fn put_stamps(&self, root: &FolderNode) -> Result<(), Error> {
        files::write(&self.folder.join("stamps"), &encode_cache(root))
    }
}

/// Locks a store, which is created if there is none.
fn lock_of(folder: &Path, on_busy: OnBusy) -> Result<File, Error> {
    loop {
        create_folder(folder)?;
        let path = folder.join("lock");
        let lock = create_private(&path, fs::OpenOptions::new().write(true))?;
        take(&lock, folder, on_busy)?;
        if is_lock_of(&lock, folder) {
            for name in FOLDERS {
                create_folder(&folder.join(name))?;
            }
            return Ok(lock);
        }
    }
}

/// Reports whether a lock is that of the store; the handle that had it before may have removed the
/// store.
fn is_lock_of(lock: &File, folder: &Path) -> bool {
    let named = fs::metadata(folder.join("lock"));
    let inode = |it: &Metadata| (it.dev(), it.ino());
    matches!((lock.metadata(), named), (Ok(a), Ok(b)) if inode(&a) == inode(&b))
}

fn take(lock: &File, folder: &Path, on_busy: OnBusy) -> Result<(), Error> {
    let began = Instant::now();
    let may_wait = || match on_busy {
        OnBusy::Fail => false,
        OnBusy::Wait(time) => began.elapsed() < time,
    };
    let operation = FlockOperation::NonBlockingLockExclusive;
    loop {
        match rustix::io::retry_on_intr(|| flock(lock, operation)) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if may_wait() => thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(Error::Busy(folder.to_owned())),
            Err(error) => return Err(Error::disk(folder, error)),
        }
    }
}

impl OpenPack {
    fn stored<'a>(&'a self, location: &Location) -> impl Read + use<'a> {
        StoredBytes {
            file: &self.file,
            offset: location.offset,
            rest: location.stored,
        }
    }
}

/// The stored bytes of one content. Readers of one pack do not disturb each other.
struct StoredBytes<'a> {
    file: &'a File,
    offset: u64,
    rest: u64,
}

impl Read for StoredBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer
            .len()
            .min(usize::try_from(self.rest).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut buffer[..length], self.offset)?;
        self.offset += count as u64;
        self.rest -= count as u64;
        Ok(count)
    }
}

/// Writer that hashes what passes, and keeps the error of the writer below apart from errors of
/// the reader.
struct HashingWriter<'a, W> {
    to: &'a mut W,
    hasher: sha2::Sha256,
    error: Option<io::Error>,
}

impl<'a, W> HashingWriter<'a, W> {
    fn new(to: &'a mut W) -> Self {
        let hasher = sha2::Digest::new();
        let error = None;
        Self { to, hasher, error }
    }

    fn hash(self) -> ContentHash {
        ContentHash::from_bytes(sha2::Digest::finalize(self.hasher).into())
    }
}

impl<W: Write> Write for HashingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sha2::Digest::update(&mut self.hasher, bytes);
        match self.to.write_all(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that hangs with the lock, such as one on a lost file server, must not hang others.
    #[test]
    fn the_wait_for_a_lock_ends() {
        let home = tempfile::tempdir().expect("a folder");
        let store = home.path().join("store");
        let held = lock_of(&store, OnBusy::Fail).expect("the lock");
        for wait in [OnBusy::Fail, OnBusy::Wait(Duration::from_millis(30))] {
            let error = lock_of(&store, wait).expect_err("the lock is held");
            assert!(matches!(error, Error::Busy(_)), "{wait:?}: {error}");
        }
        let waiting = thread::spawn(move || lock_of(&store, OnBusy::Wait(LOCK_TIMEOUT)));
        drop(held);
        waiting.join().expect("a thread").expect("the lock");
    }
}
