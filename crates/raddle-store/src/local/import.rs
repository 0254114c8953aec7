//! Imports a thread into the local journal. Marks name the staged threads of running imports.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use raddle_core::ThreadId;
use raddle_core::ports::{Journal, ReadError};

use super::LocalJournal;
use super::archive::Archive;
use crate::bundle::BundleReader;
use crate::import::{Import, ImportError, ImportOptions, ImportSummary};

impl LocalJournal {
    /// Imports a thread from a file, with the same record numbers, so that cursors stay valid.
    pub async fn import(
        &self,
        file: BundleReader<impl BufRead>,
        options: ImportOptions,
    ) -> Result<ImportSummary, ImportError> {
        let marks = marks(&self.folder);
        self.sweep(&marks).await;
        let staged = ThreadId::mint();
        let import = Import::begin(self, staged, &file, options).await?;
        // If this process dies, the next import finds the mark and deletes the staged thread.
        let mark = ImportMark::take(&marks, staged)?;
        let outcome = import.run(file, options.now).await;
        if self.delete(staged).await.is_ok() {
            mark.remove();
        }
        outcome
    }

    /// Whether lists show a thread; they do not show a staged one.
    fn is_shown(&self, thread: ThreadId) -> Result<bool, ReadError> {
        let Some(archive) = Archive::open(&self.folder)? else {
            return Ok(false);
        };
        match archive.summary(thread) {
            Ok(summary) => Ok(summary.is_some()),
            Err(ReadError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the staged threads of imports whose process died.
    async fn sweep(&self, marks: &Path) {
        let Ok(entries) = fs::read_dir(marks) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<ThreadId>().ok()) else {
                continue;
            };
            let Some(mark) = ImportMark::take_abandoned(entry.path()) else {
                continue;
            };
            // An older version may have published the staged thread just before its process died.
            let finished = match self.is_shown(thread) {
                Ok(true) => true,
                Ok(false) => self.delete(thread).await.is_ok(),
                Err(_) => false,
            };
            if finished {
                mark.remove();
            }
        }
    }
}

/// Marker file that names a staged thread. It is locked while the import runs.
struct ImportMark {
    path: PathBuf,
    _file: fs::File,
}

impl ImportMark {
    fn take(marks: &Path, staged: ThreadId) -> io::Result<Self> {
        fs::create_dir_all(marks)?;
        let path = marks.join(staged.to_string());
        let file = fs::File::create(&path)?;
        file.lock()?;
        Ok(Self { path, _file: file })
    }

    /// Returns a mark that no process holds any more.
    fn take_abandoned(path: PathBuf) -> Option<Self> {
        let file = fs::File::open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Self { path, _file: file })
    }

    fn remove(self) {
        // A mark that stays behind costs the next import one check: visible threads are not
        // deleted.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the folder of the marks of running imports.
fn marks(folder: &Path) -> PathBuf {
    folder.join("imports")
}
