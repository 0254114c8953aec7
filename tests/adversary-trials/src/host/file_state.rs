//! State of the files that must not change, as the host sees it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::Result;

use super::{HostLayout, RESEMBLING};

/// Protected names in the workspace. The last one does not exist.
const PROTECTED: [&str; 4] = [".git", ".codex", ".raddle", ".agents"];

/// State of one file or folder that must not change.
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

pub(super) fn look(layout: &HostLayout) -> Result<BTreeSet<FileState>> {
    let workspace = layout.workspace();
    let mut paths = vec![
        layout.outside(),
        layout.root.join("workspace-evil"),
        layout.user(),
        layout.home().join("config.toml"),
        layout.home().join("rules.toml"),
        layout.locked(),
        layout.kept(),
        layout.home().join("auth.json"),
        layout.home().join("keys"),
        workspace.join("nested/.git"),
    ];
    paths.extend(
        PROTECTED
            .iter()
            .chain(&RESEMBLING)
            .map(|it| workspace.join(it)),
    );
    let mut states = BTreeSet::new();
    while let Some(path) = paths.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_file = metadata.is_file();
        let mut is_empty = !is_file;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
                is_empty = false;
            }
        }
        // An empty folder takes the place of a missing protected name while commands run.
        if is_empty && path.parent() == Some(&workspace) {
            continue;
        }
        // The times of the user's own folders may change; their contents may not.
        let is_outside = path.starts_with(layout.outside());
        states.insert(FileState {
            inode: metadata.ino(),
            links: metadata.nlink(),
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            written: match is_file || is_outside {
                true => (metadata.mtime(), metadata.mtime_nsec()),
                false => (0, 0),
            },
            bytes: if is_file { fs::read(&path).ok() } else { None },
            path,
        });
    }
    Ok(states)
}
