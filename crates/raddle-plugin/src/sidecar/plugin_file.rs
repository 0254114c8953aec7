//! Files of one plugin in the home: its log, its approved permissions and its state.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use raddle_config::{PrivateFile, PrivateFileError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reason why a file of a plugin cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginFileError {
    /// Its folder cannot be created.
    #[error("cannot create {}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It has an unknown form.
    #[error("{} cannot be read; remove it, and the plugin starts without it", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
    },
    /// It cannot be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It cannot be read or written.
    #[error(transparent)]
    File(PrivateFileError),
}

impl From<PrivateFileError> for PluginFileError {
    fn from(error: PrivateFileError) -> Self {
        match error {
            PrivateFileError::Malformed { path, .. } => Self::Malformed { path },
            error => Self::File(error),
        }
    }
}

/// Returns the path of a plugin's file.
pub(super) fn plugin_path(home: &Path, id: &str, suffix: &str) -> PathBuf {
    // The id of a configuration may be no valid one.
    let name = id.replace('/', "_");
    home.join("plugins").join(format!("{name}.{suffix}"))
}

/// A JSON file of a plugin, which several processes may write. Cheap to clone; each method blocks
/// on the disk.
#[derive(Clone, Debug)]
pub(super) struct PluginFile(PrivateFile);

impl PluginFile {
    pub(super) fn new(home: &Path, id: &str, suffix: &str) -> Self {
        let path = plugin_path(home, id, suffix);
        // The errors of this type name another remedy.
        Self(PrivateFile::new(path, ""))
    }

    /// Reads the content; that of a missing file is empty.
    pub(super) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, PluginFileError> {
        Ok(self.0.read()?)
    }

    /// Changes the content while other writers are locked out. Nothing is written if `change`
    /// fails.
    pub(super) fn update<T: DeserializeOwned + Default + Serialize, R, E: From<PluginFileError>>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let _lock = self.lock()?;
        let mut content = self.read()?;
        let result = change(&mut content)?;
        self.0.write(&content).map_err(PluginFileError::from)?;
        Ok(result)
    }

    /// Removes the file while other writers are locked out.
    pub(super) fn remove(&self) -> Result<(), PluginFileError> {
        let is_absent = |it: &Path| matches!(it.try_exists(), Ok(false));
        if self.0.path().parent().is_some_and(is_absent) {
            return Ok(());
        }
        let _lock = self.lock()?;
        match fs::remove_file(self.0.path()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                let path = self.0.path().to_owned();
                Err(PluginFileError::Remove { path, source })
            }
            _ => Ok(()),
        }
    }

    fn lock(&self) -> Result<fs::File, PluginFileError> {
        if let Some(folder) = self.0.path().parent() {
            let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            created.map_err(|source| PluginFileError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        }
        Ok(self.0.lock()?)
    }
}
