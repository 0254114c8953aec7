//! The folders that the operator trusts: `trust_level` under `[projects."/path"]`.

use std::path::{Path, PathBuf};

use raddle_protocol::{ConfigEdit, MergeStrategy};

use crate::config::{Config, ConfigWriter, State};
use crate::config_error::ConfigWriteError;

/// Value of `trust_level` for a folder that is trusted.
const TRUSTED: &str = "trusted";

/// Returns whether the operator trusts a workspace, or `None` if the configuration does not say.
/// `folders` are its folder and those above it, up to the root of its repository; the first that
/// the configuration names decides. Blocks on the disk.
pub fn trust(config: &State, folders: &[PathBuf]) -> Option<bool> {
    let projects = config.value("projects")?.as_table()?;
    folders.iter().find_map(|folder| {
        let real = std::fs::canonicalize(folder).ok();
        let is_named = |path: &str| {
            let path = Path::new(path);
            path == folder || real.as_deref() == Some(path)
        };
        let mut entries = projects.iter();
        let (_, entry) = entries.find(|(path, _)| is_named(path))?;
        let level = entry.get("trust_level")?.as_str()?;
        Some(level == TRUSTED)
    })
}

/// Stores whether a folder is trusted, in the user's file. Blocks on the disk.
pub fn decide(
    config: &Config,
    folder: &str,
    is_trusted: bool,
    writer: ConfigWriter,
) -> Result<(), ConfigWriteError> {
    // The escapes of JSON are also those of TOML.
    let key = serde_json::Value::from(folder);
    let edit = ConfigEdit {
        key_path: format!("projects.{key}.trust_level"),
        value: match is_trusted {
            true => TRUSTED.into(),
            false => "untrusted".into(),
        },
        merge_strategy: MergeStrategy::Replace,
    };
    config.write(&[edit], None, None, writer).map(drop)
}

/// Returns a folder and those above it, up to the root of its repository. Without a repository,
/// only the folder itself. Blocks on the disk.
pub fn folders(cwd: &Path) -> Vec<PathBuf> {
    let ancestors: Vec<PathBuf> = cwd.ancestors().map(Path::to_owned).collect();
    let root = ancestors
        .iter()
        .position(|folder| folder.join(".git").exists())
        .unwrap_or(0);
    ancestors.into_iter().take(root + 1).collect()
}
