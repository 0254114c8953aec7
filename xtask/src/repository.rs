//! Location and files of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::Run;

/// Returns the root directory of the repository. Cargo sets `CARGO_MANIFEST_DIR` at run time; the
/// value from the build serves programs that are started by hand.
pub fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = package
        .parent()
        .context("this package is not inside the repository")?;
    Ok(root.to_owned())
}

/// Prepares cargo in the root of the repository.
pub fn cargo(root: &Path) -> Run {
    Run::new("cargo").directory(root)
}

/// End of the name of a commit with uncommitted changes.
pub const DIRTY: &str = "-dirty";

/// Returns the short id of the checked-out commit, with a mark if files differ from it. The pages
/// that an earlier proof wrote do not count.
pub fn commit(root: &Path) -> Result<String> {
    let git = |args: &[&str]| Run::new("git").args(args).directory(root).output();
    let id = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&[
        "diff",
        "--name-only",
        "HEAD",
        "--",
        ".",
        ":(exclude)docs/proofs.json",
        ":(exclude)docs/promises.md",
        ":(exclude)tests/simulator/results.txt",
    ])?;
    let mark = if changed.trim().is_empty() { "" } else { DIRTY };
    Ok(format!("{}{mark}", id.trim()))
}

/// Returns the paths of all files that git tracks or would add: tracked, or new and not ignored. A
/// deleted tracked file is included until the deletion is committed.
pub fn files(root: &Path) -> Result<Vec<String>> {
    let listing = Run::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .directory(root)
        .output()?;
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    Ok(paths.map(str::to_owned).collect())
}

/// The files of a repository: path, and text unless the file is binary.
///
/// Checks read this instead of the disk, so that tests can use an artificial tree.
pub struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads all existing [`files`].
    pub fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in self::files(root)? {
            let full_path = root.join(&path);
            // Deleted but not yet committed, or a link out of the repository.
            if !full_path.is_file() {
                continue;
            }
            let bytes = fs::read(&full_path).with_context(|| format!("cannot read {path}"))?;
            let text = if bytes.contains(&0) {
                None
            } else {
                String::from_utf8(bytes).ok()
            };
            files.insert(path, text);
        }
        Ok(Self { files })
    }

    /// Returns a tree of these files, with their texts.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())))
            .collect();
        Self { files }
    }

    pub fn has_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether there is a file at this path or below it.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.has_file(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(it, _)| it.starts_with(&folder))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Returns the path of every file.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns every text file with its path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }
}
