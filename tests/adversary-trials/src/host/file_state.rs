//! What must stay as it is, as the host sees it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::Result;

use super::{HostLayout, RESEMBLING};

/// What is protected in the workspace. The last one is not there.
const PROTECTED: [&str; 4] = [".git", ".codex", ".raddle", ".agents"];

/// One file or folder that must stay as it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileState {
    pub(super) path: PathBuf,
    inode: u64,
    links: u64,
    mode: u32,
    owner: (u32, u32),
    written: (i64, i64),
    bytes: Option<Vec<u8>>,
}

pub(super) fn look(stage: &HostLayout) -> Result<BTreeSet<FileState>> {
    let workspace = stage.workspace();
    let mut paths = vec![
        stage.outside(),
        stage.root.join("workspace-evil"),
        stage.user(),
        stage.home().join("config.toml"),
        stage.home().join("rules.toml"),
        stage.locked(),
        stage.kept(),
        stage.home().join("auth.json"),
        stage.home().join("keys"),
        workspace.join("nested/.git"),
    ];
    paths.extend(
        PROTECTED
            .iter()
            .chain(&RESEMBLING)
            .map(|it| workspace.join(it)),
    );
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_file = found.is_file();
        let mut is_empty = !is_file;
        if found.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
                is_empty = false;
            }
        }
        // An empty folder stands for a missing protected name while commands run.
        if is_empty && path.parent() == Some(&workspace) {
            continue;
        }
        // The times of the user's own folders may change; what is in them may not.
        let is_outside = path.starts_with(stage.outside());
        seen.insert(FileState {
            inode: found.ino(),
            links: found.nlink(),
            mode: found.mode(),
            owner: (found.uid(), found.gid()),
            written: match is_file || is_outside {
                true => (found.mtime(), found.mtime_nsec()),
                false => (0, 0),
            },
            bytes: if is_file { fs::read(&path).ok() } else { None },
            path,
        });
    }
    Ok(seen)
}
