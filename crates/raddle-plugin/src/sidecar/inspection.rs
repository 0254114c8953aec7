//! A plugin's folder as it is now: its manifest, and the hash of its files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::folder_hash::{self, FolderError, FolderHash};
use super::manifest::{Manifest, ManifestError};
use super::tool_name::model_name;

/// The folder of a plugin, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedPlugin {
    /// Real path of the folder.
    pub folder: PathBuf,
    /// The manifest in it.
    pub manifest: Manifest,
    /// Hash of all files below it.
    pub hash: FolderHash,
}

/// Reason why the folder of a plugin cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// The folder cannot be found.
    #[error("the folder {} cannot be used: {error}; name the folder of a plugin", path.display())]
    Missing {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The path depends on the working directory.
    #[error("the path {} is relative; write the absolute path of the folder", path.display())]
    Relative {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The files cannot be hashed.
    #[error("the folder {} cannot be pinned: {error}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The reason.
        error: FolderError,
    },
}

impl InspectionError {
    /// Whether the folder may be usable later without a change of its files.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Manifest(ManifestError::Read { .. }) => true,
            Self::Folder { error, .. } => {
                matches!(error, FolderError::Read { .. } | FolderError::Changing)
            }
            Self::Relative { .. } | Self::Manifest(_) => false,
        }
    }
}

impl InspectedPlugin {
    /// Reads a folder. The manifest is the one that the hash covers. It may block on the disk.
    pub fn read(folder: &Path) -> Result<Self, InspectionError> {
        let real = fs::canonicalize(folder).map_err(|error| InspectionError::Missing {
            path: folder.to_owned(),
            error,
        })?;
        let unusable = |error| InspectionError::Folder {
            path: real.clone(),
            error,
        };
        // First, because its error is the better one for a folder that is no plugin.
        let manifest = Manifest::read(&real)?;
        let hash = folder_hash::hash(&real).map_err(unusable)?;
        if Manifest::read(&real)? != manifest
            || folder_hash::stamp(&real).map_err(unusable)? != hash.stamp
        {
            return Err(unusable(FolderError::Changing));
        }
        Ok(Self {
            folder: real,
            manifest,
            hash,
        })
    }

    /// Returns the names of its tools, as the model and rules know them.
    pub fn tool_names(&self) -> Vec<String> {
        let Manifest { id, tools, .. } = &self.manifest;
        let names = tools.iter().map(|it| model_name(id, &it.name));
        names.collect()
    }
}
