//! Files beside the journal, named by the hash of what they hold.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use raddle_core::ThreadId;

use crate::blob::{self, Hash};

/// How the name of a file begins that is not yet written.
const DRAFT: &str = "draft-";

/// How hard to compress: quickly.
const LEVEL: i32 = 1;

/// The folder of such files.
#[derive(Clone, Debug)]
pub(super) struct BlobFiles {
    folder: PathBuf,
    session: i64,
}

impl BlobFiles {
    pub(super) fn new(journal: &Path) -> Self {
        Self {
            folder: journal.join("blobs"),
            session: i64::from_le_bytes(tail(ThreadId::mint())),
        }
    }

    /// A number that no other process has, nor this one when it opens the journal again.
    pub(super) fn session(&self) -> i64 {
        self.session
    }

    /// Writes bytes and waits until they and their name are on the disk.
    pub(super) fn write(&self, hash: &Hash, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(hash);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        // One that is there holds what its name says, but whoever wrote it may have been stopped before
        // the name itself was safe.
        if let Ok(there) = File::open(&path) {
            // Whoever looks for old files leaves it alone from now on.
            there.set_modified(SystemTime::now())?;
            return self.sync_names(folder);
        }
        // No process number is in its name: those come again, and a draft may have been left behind.
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{DRAFT}{:x}-{next}", self.session));
        let written = write_synced(&draft, bytes).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // The disk may be full; what is half written only takes more of it.
            let _ = fs::remove_file(&draft);
        }
        written?;
        self.sync_names(folder)
    }

    /// Waits until the names in a folder, and the folder's own, are on the disk.
    fn sync_names(&self, folder: &Path) -> io::Result<()> {
        sync(folder)?;
        sync(&self.folder)?;
        sync(self.folder.parent().unwrap_or(&self.folder))
    }

    /// The bytes, if they are what their name says.
    pub(super) fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = zstd::decode_all(File::open(self.path(hash))?)?;
        if blob::hash(&bytes) == *hash {
            return Ok(bytes);
        }
        let what = format!(
            "the file {} does not hold what its name says",
            blob::hex(hash)
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    pub(super) fn holds(&self, hash: &Hash) -> bool {
        self.path(hash).exists()
    }

    /// Removes a file; one that is not there is removed already.
    pub(super) fn remove(&self, hash: &Hash) -> io::Result<()> {
        match fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The files of a heap that nobody has written for so long. Drafts as old are removed on the way.
    pub(super) fn old(&self, heap: u8, age_min: Duration) -> io::Result<Vec<Hash>> {
        let folder_name = format!("{heap:02x}");
        let entries = match fs::read_dir(self.folder.join(&folder_name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut old = Vec::new();
        for entry in entries {
            let entry = entry?;
            // One that has just gone is no longer old.
            let Ok(modified) = entry.metadata().and_then(|it| it.modified()) else {
                continue;
            };
            // One from the future is as good as new.
            if !modified.elapsed().is_ok_and(|age| age >= age_min) {
                continue;
            }
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(DRAFT) {
                fs::remove_file(entry.path())?;
            }
            old.extend(blob::parse(&format!("{folder_name}{name}")));
        }
        Ok(old)
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        let name = blob::hex(hash);
        self.folder.join(&name[..2]).join(&name[2..])
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(&zstd::encode_all(bytes, LEVEL)?)?;
    file.sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The end of an id, where chance is.
fn tail(id: ThreadId) -> [u8; 8] {
    let mut tail = [0; 8];
    tail.copy_from_slice(&id.as_uuid().as_bytes()[8..]);
    tail
}
