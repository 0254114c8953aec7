//! The files of one copy.

use std::cmp::Reverse;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use raddle_core::ports::{CheckpointError, WorkspaceCopy};
use raddle_core::{ThreadId, Timestamp};
use serde::{Deserialize, Serialize};

use super::CopyFolders;
use crate::checkpoints::json_lines::make_private;

use raddle_workspace::remove_copy;

/// Name of a copy of a folder that has none.
const UNNAMED: &str = "workspace";

/// The folder from which a copy was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    origin: String,
    created_at: Timestamp,
    /// The thread for which the copy was made, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_for: Option<ThreadId>,
    /// Whether the thread was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_left: bool,
}

impl Record {
    pub fn new(origin: &str, created_at: Timestamp) -> Self {
        Self {
            origin: origin.to_owned(),
            created_at,
            made_for: None,
            is_left: false,
        }
    }

    /// Returns the record of a deleted thread.
    pub fn left(self) -> Self {
        Self {
            is_left: true,
            ..self
        }
    }

    /// The thread for which the copy was made, if that is another one.
    pub fn made_for(&self) -> Option<ThreadId> {
        self.made_for
    }

    pub fn is_left(&self) -> bool {
        self.is_left
    }

    pub fn origin(&self) -> &Path {
        Path::new(&self.origin)
    }

    /// Returns the copy in the form of the port.
    pub fn copy(&self, files: &CopyFiles) -> WorkspaceCopy {
        WorkspaceCopy {
            origin: self.origin.clone(),
            folder: files.copy(self).display().to_string(),
        }
    }
}

/// Paths of one copy and of the files about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyFiles {
    /// The thread for which the copy was made.
    thread: ThreadId,
    /// Hidden from commands.
    folder: PathBuf,
    /// The folder around the copy.
    pub work: PathBuf,
}

impl CopyFolders {
    fn records(&self) -> PathBuf {
        self.checkpoints.join("copies")
    }

    /// Returns the files of the copy of a thread.
    pub(super) fn files(&self, thread: ThreadId) -> CopyFiles {
        CopyFiles {
            thread,
            folder: self.records().join(thread.to_string()),
            work: self.copies.join(thread.to_string()),
        }
    }

    /// Returns the copy in which a thread works, which may have been made for another thread.
    pub(super) fn find(
        &self,
        thread: ThreadId,
    ) -> Result<Option<(CopyFiles, Record)>, CheckpointError> {
        let files = self.files(thread);
        let record = files.record()?;
        Ok(record.map(|record| match record.made_for {
            Some(other) => (self.files(other), record),
            None => (files, record),
        }))
    }

    /// Lets a fork work in a copy.
    pub(super) fn share(
        &self,
        files: &CopyFiles,
        record: &Record,
        fork: ThreadId,
        created_at: Timestamp,
    ) -> Result<(), CheckpointError> {
        let of_fork = self.files(fork);
        make_private(&of_fork.folder).map_err(failed)?;
        of_fork.write(&Record {
            origin: record.origin.clone(),
            created_at,
            made_for: Some(files.thread),
            is_left: false,
        })
    }

    /// Returns the threads with copies, the newest first.
    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let entries = fs::read_dir(self.records()).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| it.file_name().into_string().ok());
        let mut threads: Vec<ThreadId> = names.filter_map(|it| it.parse().ok()).collect();
        // Not every id begins with the time of creation.
        threads.sort_by_cached_key(|it| {
            let record = self.files(*it).record().ok().flatten();
            Reverse((record.map(|it| it.created_at), *it))
        });
        threads
    }
}

impl CopyFiles {
    /// The folder in which the thread works.
    pub fn copy(&self, record: &Record) -> PathBuf {
        let name = record.origin().file_name();
        self.work.join(name.unwrap_or(UNNAMED.as_ref()))
    }

    pub fn copied(&self) -> PathBuf {
        self.folder.join("copied")
    }

    pub fn applied(&self) -> PathBuf {
        self.folder.join("applied")
    }

    pub fn seen(&self) -> PathBuf {
        self.folder.join("seen")
    }

    fn record_file(&self) -> PathBuf {
        self.folder.join("copy.json")
    }

    /// Returns the record; `None` if the thread has no copy, or an incomplete one.
    pub fn record(&self) -> Result<Option<Record>, CheckpointError> {
        match fs::read(self.record_file()) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                record.map(Some).map_err(|it| failed(it.into()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes the folders, which only the user can enter. Returns where the copy belongs.
    pub fn create(&self, record: &Record) -> Result<PathBuf, CheckpointError> {
        for folder in [&self.folder, &self.work] {
            make_private(folder).map_err(|error| {
                CheckpointError::Failed(format!(
                    "cannot make {}, where the copy of the workspace belongs: {error}; give this user \
                     write access",
                    folder.display()
                ))
            })?;
        }
        Ok(self.copy(record))
    }

    /// Completes the copy.
    pub fn write(&self, record: &Record) -> Result<(), CheckpointError> {
        let temporary = self.folder.join("copy.tmp");
        let written = (|| {
            let options = &mut OpenOptions::new();
            let options = options.create(true).write(true).truncate(true).mode(0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            fs::rename(&temporary, self.record_file())?;
            File::open(&self.folder)?.sync_all()
        })();
        written.map_err(failed)
    }

    /// Removes the copy and everything about it. The record goes first, so that no part of a copy
    /// looks whole.
    pub fn remove(&self) -> Result<(), CheckpointError> {
        match fs::remove_file(self.record_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        for folder in [&self.work, &self.folder] {
            remove_copy(folder).map_err(super::failed)?;
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(format!("the copy of the workspace: {error}"))
}
