//! Files beside the journal, named by the hash of what they hold.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::blob::{self, Hash};

/// How hard to compress: quickly.
const LEVEL: i32 = 1;

/// The folder of such files.
#[derive(Clone, Debug)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn new(journal: &Path) -> Self {
        Self {
            folder: journal.join("blobs"),
        }
    }

    /// Writes bytes and waits until they and their name are on the disk.
    pub(super) fn write(&self, hash: &Hash, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(hash);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        // One that is there holds what its name says, but whoever wrote it may have been stopped before
        // the name itself was safe.
        if path.exists() {
            return self.sync_names(folder);
        }
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("draft-{}-{next}", std::process::id()));
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
