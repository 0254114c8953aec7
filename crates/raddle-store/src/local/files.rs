//! Blob files in the journal's folder, named by the hash of their content.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use raddle_core::ThreadId;

use crate::blob::{self, Hash};

/// Prefix of the name of a file that is still being written.
const DRAFT: &str = "draft-";

/// Compression level of zstd: the fastest of the regular ones.
const LEVEL: i32 = 1;

/// Folder of blob files.
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

    /// Returns a number that is unique to this opening of the journal, across all processes.
    pub(super) fn session(&self) -> i64 {
        self.session
    }

    /// Writes bytes and syncs them and their directory entry to the disk.
    pub(super) fn write(&self, hash: &Hash, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(hash);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        // An existing file holds the right content, but its writer may have died before it synced
        // the directory entry.
        if let Ok(existing) = File::open(&path) {
            // The new time protects the file from the sweep of old files.
            existing.set_modified(SystemTime::now())?;
            return self.sync_names(folder);
        }
        // The name of a draft contains no process id: those recur, and a draft may have been left
        // behind.
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{DRAFT}{:x}-{next}", self.session));
        let written = write_synced(&draft, bytes).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // The disk may be full; a partial file only uses more of it.
            let _ = fs::remove_file(&draft);
        }
        written?;
        self.sync_names(folder)
    }

    /// Syncs the entries of a folder, and the folder's own entry, to the disk.
    fn sync_names(&self, folder: &Path) -> io::Result<()> {
        sync(folder)?;
        sync(&self.folder)?;
        sync(self.folder.parent().unwrap_or(&self.folder))
    }

    /// Returns the bytes if they match the hash.
    pub(super) fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = zstd::decode_all(File::open(self.path(hash))?)?;
        if blob::hash(&bytes) == *hash {
            return Ok(bytes);
        }
        let what = format!("the file {} does not match its hash", blob::hex(hash));
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    pub(super) fn holds(&self, hash: &Hash) -> bool {
        self.path(hash).exists()
    }

    /// Removes a file. Succeeds if it does not exist.
    pub(super) fn remove(&self, hash: &Hash) -> io::Result<()> {
        match fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the files of a directory that were not written for this long. Removes drafts of that
    /// age.
    pub(super) fn old(&self, heap: u8, age_min: Duration) -> io::Result<Vec<Hash>> {
        let folder_name = format!("{heap:02x}");
        let entries = match fs::read_dir(self.folder.join(&folder_name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut old = Vec::new();
        for entry in entries {
            let entry = entry?;
            // The file was removed in the meantime.
            let Ok(modified) = entry.metadata().and_then(|it| it.modified()) else {
                continue;
            };
            // A time in the future counts as new.
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

/// Returns the random end of an id.
fn tail(id: ThreadId) -> [u8; 8] {
    let mut tail = [0; 8];
    tail.copy_from_slice(&id.as_uuid().as_bytes()[8..]);
    tail
}
