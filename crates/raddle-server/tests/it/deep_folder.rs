//! Trees that are deeper than the longest path.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

/// Deeper than the longest path: it has 4096 bytes, and each level needs two.
pub const LEVELS: usize = 2100;

/// A chain of nested folders. Its rest is removed level by level, because removal by path cannot
/// reach it.
pub struct DeepFolder {
    top: PathBuf,
}

impl DeepFolder {
    pub fn new(top: impl AsRef<Path>, levels: usize) -> Self {
        let top = top.as_ref().to_owned();
        std::fs::create_dir(&top).unwrap();
        let folder = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut innermost = open(&top, folder, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&innermost, "d", Mode::RWXU).unwrap();
            innermost = openat(&innermost, "d", folder, Mode::empty()).unwrap();
        }
        Self { top }
    }

    /// A tree that a server creates; only removed here.
    pub fn created_by_server(top: impl AsRef<Path>) -> Self {
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
