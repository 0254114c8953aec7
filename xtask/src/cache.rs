//! The cache directory that speeds up later CI runs: builds, tools and parts, shared between
//! clones.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Cache size above which the builds are deleted. Tools and parts stay: they are small and slow to
/// install.
const BYTES_MAX: u64 = 20_000_000_000;

#[derive(Clone)]
pub struct Cache {
    root: PathBuf,
}

/// An exclusive lock on the cache. The operating system releases it when the process ends.
pub struct Lock {
    _file: File,
}

impl Cache {
    /// Opens the directory `RADDLE_CI_CACHE`, or `~/.cache/raddle-ci`.
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

    /// Returns the copy of the checkout that is built; see `mirror.rs`.
    pub fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    /// Returns the build directory of fuzz targets. They are built with other flags, which would
    /// invalidate the ordinary builds.
    pub fn fuzz_target(&self) -> PathBuf {
        self.root.join("target-fuzz")
    }

    /// Returns the directory of inputs that broke a fuzz target; kept after the run.
    pub fn fuzz_findings(&self) -> PathBuf {
        self.root.join("fuzz-findings")
    }

    /// Returns the directory of the results of `fleet-faults`; kept, so that the proof can continue.
    pub fn fleet_faults(&self) -> PathBuf {
        self.root.join("fleet-faults")
    }

    /// Returns the directory for outputs of background steps and for the tables of step times.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Returns the directory of the book: its sources and the site.
    pub fn book(&self) -> PathBuf {
        self.root.join("book")
    }

    pub fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    pub fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }

    /// Waits until no other process holds the lock of this name.
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

    /// Deletes the builds when the cache has grown too large. Requires the `ci` lock.
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

/// Removes a directory, if it exists.
pub fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the size of all files below. Unreadable files count as zero: the sum only controls
/// pruning.
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
    fn lock_blocks_a_second_run_until_it_is_dropped() {
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
