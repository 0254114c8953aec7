//! A plugin's folder as it is now: its manifest, and the hash of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use raddle_config::{McpPlugin, McpServer};
use raddle_core::ports::PluginSkill;

use super::folder_hash::{self, FolderError, FolderHash};
use super::manifest::{Manifest, ManifestError};
use super::skills::{self, PluginSkillError};
use super::tool_name::model_name;

/// The folder of a plugin, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedPlugin {
    /// Real path of the folder.
    pub folder: PathBuf,
    /// The manifest in it.
    pub manifest: Manifest,
    /// The skills in it.
    pub skills: Vec<PluginSkill>,
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
    /// A skill cannot be used.
    #[error(transparent)]
    Skill(#[from] PluginSkillError),
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
            Self::Relative { .. } | Self::Manifest(_) | Self::Skill(_) => false,
        }
    }
}

/// MCP server of a plugin whose name the configuration uses for another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it defines the MCP server `{0}`, and the configuration has another one of this name; rename \
     that one"
)]
pub struct McpCollision(String);

impl InspectedPlugin {
    /// Reads a folder. The manifest and the skills are those that the hash covers. It may block on
    /// the disk.
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
        let skills = skills::read(&real, &manifest)?;
        if Manifest::read(&real)? != manifest
            || folder_hash::stamp(&real).map_err(unusable)? != hash.stamp
        {
            return Err(unusable(FolderError::Changing));
        }
        Ok(Self {
            folder: real,
            manifest,
            skills,
            hash,
        })
    }

    /// Returns the MCP servers that it defines.
    pub fn mcp_servers(&self) -> Vec<Arc<McpServer>> {
        let Manifest {
            id, mcp_servers, ..
        } = &self.manifest;
        let plugin = || McpPlugin {
            id: id.clone(),
            folder: self.folder.clone(),
            stamp: self.hash.stamp.0,
        };
        let servers = mcp_servers.iter().map(|it| McpServer {
            plugin: Some(plugin()),
            ..it.clone()
        });
        servers.map(Arc::new).collect()
    }

    /// Returns the first of its MCP servers whose name the configuration uses for another one.
    pub fn mcp_collision(&self, taken: &[String]) -> Option<McpCollision> {
        let names = self.manifest.mcp_servers.iter().map(|it| &it.name);
        let mut taken = names.filter(|it| taken.contains(it));
        taken.next().cloned().map(McpCollision)
    }

    /// Returns the names of its tools, as the model and rules know them.
    pub fn tool_names(&self) -> Vec<String> {
        let Manifest { id, tools, .. } = &self.manifest;
        let names = tools.iter().map(|it| model_name(id, &it.name));
        names.collect()
    }
}
