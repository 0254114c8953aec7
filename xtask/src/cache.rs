//! The folder that makes a second CI run warm: builds, tools and parts, kept between clones.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Above this size the builds are dropped; tools and parts stay, they are small and slow to get.
const BYTES_MAX: u64 = 20_000_000_000;

/// The cache folder.
#[derive(Clone)]
pub struct Cache {
    root: PathBuf,
}

/// Held for as long as the cache is used. The system gives it back when the process ends.
pub struct Lock {
    _file: File,
}

impl Cache {
    /// `RADDLE_CI_CACHE`, or `~/.cache/raddle-ci`.
    pub fn open() -> Result<Self> {
        let root = match std::env::var_os("RADDLE_CI_CACHE").filter(|it| !it.is_empty()) {
            Some(folder) => std::path::absolute(folder)?,
            None => std::env::home_dir()
                .context("there is no home folder; set RADDLE_CI_CACHE")?
                .join(".cache/raddle-ci"),
        };
        Self::at(root)
    }

    fn at(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root })
    }

    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// The copy of the checkout that is built; see `mirror.rs`.
    pub fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    /// Fuzz targets are built with other flags, and would throw out the ordinary builds.
    pub fn fuzz_target(&self) -> PathBuf {
        self.root.join("target-fuzz")
    }

    /// Inputs that broke a fuzz target; kept after the run.
    pub fn fuzz_findings(&self) -> PathBuf {
        self.root.join("fuzz-findings")
    }

    /// Outputs of steps in the background, and the tables of step times.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    pub fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }

    /// Waits until nobody else holds the lock of this name.
    pub fn lock(&self, name: &str) -> Result<Lock> {
        let path = self.root.join(format!("{name}.lock"));
        let file = File::options().create(true).append(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                println!("waiting for another run that holds {}", path.display());
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        Ok(Lock { _file: file })
    }

    /// Drops the builds when the cache has grown too large. Only with the `ci` lock held.
    pub fn prune(&self) -> Result<()> {
        let bytes = bytes_in(&self.root);
        if bytes <= BYTES_MAX {
            return Ok(());
        }
        println!(
            "the cache holds {:.1} GB: dropping its builds",
            bytes as f64 / 1e9
        );
        for folder in [self.target(), self.fuzz_target()] {
            remove_folder(&folder)?;
        }
        Ok(())
    }
}

/// Removes a folder; one that is not there is already removed.
pub fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The size of all files below. What cannot be read counts as nothing: the sum only steers pruning.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_a_second_run_out_until_it_is_dropped() {
        let root = std::env::temp_dir().join(format!("raddle-cache-{}", std::process::id()));
        let cache = Cache::at(root.clone()).expect("a folder");
        let lock = cache.lock("ci").expect("free");
        let again = File::options()
            .append(true)
            .open(root.join("ci.lock"))
            .expect("a file");
        assert!(matches!(again.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        again.try_lock().expect("free again");
        remove_folder(&root).expect("cleaned up");
    }

    #[test]
    fn sizes_are_summed_over_folders() {
        let root = std::env::temp_dir().join(format!("raddle-sizes-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).expect("folders");
        fs::write(root.join("one"), "1").expect("a file");
        fs::write(root.join("a/b/four"), "4444").expect("a file");
        assert_eq!(bytes_in(&root), 5);
        remove_folder(&root).expect("cleaned up");
        remove_folder(&root).expect("already gone is fine");
    }
}
