//! A named pipe: reading it takes exactly as long as the test wants.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use super::eventually;

pub struct Fifo {
    path: PathBuf,
}

impl Fifo {
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("fifo");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a named pipe");
        Self { path }
    }

    pub fn path(&self) -> &str {
        self.path.to_str().expect("a path is text")
    }

    /// Opens it for writing, which works once someone has begun to read it.
    pub fn writer(&self) -> File {
        eventually("a reader of the named pipe", || self.try_writer())
    }

    /// Opens it for writing if someone reads it.
    pub fn try_writer(&self) -> Option<File> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(&self.path)
            .ok()
    }
}
