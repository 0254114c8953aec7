//! Trees that are deeper than any path can say.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

/// Deeper than a path can say: the longest has 4096 bytes, and each level needs two.
pub const LEVELS: usize = 2100;

/// A folder with folders in it, each in the one before. What is left of it at the end is taken down level by
/// level, because what removes a tree by its path cannot.
pub struct DeepFolder {
    top: PathBuf,
}

impl DeepFolder {
    pub fn new(top: impl AsRef<Path>, levels: usize) -> Self {
        let top = top.as_ref().to_owned();
        std::fs::create_dir(&top).unwrap();
        let folder = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut inside = open(&top, folder, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&inside, "d", Mode::RWXU).unwrap();
            inside = openat(&inside, "d", folder, Mode::empty()).unwrap();
        }
        Self { top }
    }

    /// One that a server makes.
    pub fn made_elsewhere(top: impl AsRef<Path>) -> Self {
        let top = top.as_ref().to_owned();
        Self { top }
    }
}

impl Drop for DeepFolder {
    fn drop(&mut self) {
        let (first, next) = (self.top.join("d"), self.top.join("next"));
        while std::fs::rename(first.join("d"), &next).is_ok() {
            let _ = std::fs::remove_dir(&first);
            let _ = std::fs::rename(&next, &first);
        }
    }
}
