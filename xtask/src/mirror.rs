//! A copy of the checkout in the cache, always at the same path.
//!
//! Cargo uses modification times to decide what to rebuild. In a fresh clone every file is new, so
//! every crate would be rebuilt, regardless of the cache. In this copy a file is written only when
//! its content differs from the last run's, so a second clone of the same commit builds nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository;

/// Numbers of files written and removed by one refresh.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refresh {
    pub written: usize,
    pub removed: usize,
}

/// Makes `copy` equal to the files of the checkout that git tracks or would add.
pub fn refresh(checkout: &Path, copy: &Path) -> Result<Refresh> {
    let files = repository::files(checkout)?;
    sync(checkout, copy, &files)
}

fn sync(checkout: &Path, copy: &Path, files: &[String]) -> Result<Refresh> {
    let mut refresh = Refresh::default();
    let mut expected = BTreeSet::new();
    for file in files {
        let from = checkout.join(file);
        if from.is_symlink() {
            bail!("{file} is a symbolic link; the copy for CI holds plain files only");
        }
        // Deleted in the checkout but not yet committed.
        if !from.is_file() {
            continue;
        }
        let to = copy.join(file);
        if copy_if_changed(&from, &to).with_context(|| format!("cannot copy {file}"))? {
            refresh.written += 1;
        }
        expected.insert(to);
    }
    refresh.removed = remove_others(copy, &expected)?;
    Ok(refresh)
}

/// Copies the file if its content or mode differs. Returns whether it was written.
fn copy_if_changed(from: &Path, to: &Path) -> Result<bool> {
    let bytes = fs::read(from)?;
    let mode = fs::metadata(from)?.permissions().mode() & 0o777;
    if let Ok(existing) = fs::read(to)
        && existing == bytes
    {
        if fs::metadata(to)?.permissions().mode() & 0o777 != mode {
            fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
        }
        return Ok(false);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(true)
}

/// Removes every file below `folder` that is not wanted, and then the empty directories.
fn remove_others(folder: &Path, expected: &BTreeSet<PathBuf>) -> Result<usize> {
    let mut removed = 0;
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(0);
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            removed += remove_others(&path, expected)?;
            // Fails for a directory that is not empty, as intended.
            let _ = fs::remove_dir(&path);
        } else if !expected.contains(&path) {
            fs::remove_file(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_changed_files_are_written_and_deleted_files_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (checkout, copy) = (folder.path().join("checkout"), folder.path().join("copy"));
        fs::create_dir_all(checkout.join("a/b")).expect("folders");
        fs::write(checkout.join("a/b/one"), "1").expect("a file");
        fs::write(checkout.join("two"), "2").expect("a file");
        let all = names(&["a/b/one", "two"]);

        let first = sync(&checkout, &copy, &all).expect("a copy");
        assert_eq!(
            first,
            Refresh {
                written: 2,
                removed: 0
            }
        );
        let written = |file: &str| fs::metadata(copy.join(file)).and_then(|it| it.modified());
        let before = written("a/b/one").expect("a time");

        // As in a fresh clone: the same content, a newer time.
        fs::write(checkout.join("a/b/one"), "1").expect("a file");
        fs::write(checkout.join("two"), "two").expect("a file");
        let second = sync(&checkout, &copy, &all).expect("a copy");
        assert_eq!(
            second,
            Refresh {
                written: 1,
                removed: 0
            }
        );
        assert_eq!(written("a/b/one").expect("a time"), before);
        assert_eq!(fs::read_to_string(copy.join("two")).expect("a file"), "two");

        fs::remove_file(checkout.join("a/b/one")).expect("removed");
        let third = sync(&checkout, &copy, &all).expect("a copy");
        assert_eq!(
            third,
            Refresh {
                written: 0,
                removed: 1
            }
        );
        assert!(!copy.join("a").exists());
    }

    #[test]
    fn executable_mode_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (checkout, copy) = (folder.path().join("checkout"), folder.path().join("copy"));
        fs::create_dir_all(&checkout).expect("a folder");
        let program = checkout.join("run");
        fs::write(&program, "#!/bin/sh\n").expect("a file");
        let all = names(&["run"]);
        sync(&checkout, &copy, &all).expect("a copy");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
        sync(&checkout, &copy, &all).expect("a copy");
        let mode = fs::metadata(copy.join("run"))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o111, 0o111);
    }
}
