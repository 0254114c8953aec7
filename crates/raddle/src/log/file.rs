//! A log in a file. Everything that is written to stderr comes into it, also what a panic says.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// A file this long is set aside.
const BYTES_MAX: u64 = 8 << 20;

/// Where the log is. Held while the file is set aside.
static PATH: OnceLock<Mutex<PathBuf>> = OnceLock::new();

pub(super) fn move_to(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    rustix::stdio::dup2_stderr(&file)?;
    let _ = PATH.set(Mutex::new(path.to_owned()));
    keep_short();
    Ok(())
}

/// Sets the file aside if it has become long. If that fails it grows on: there is nowhere to say so.
pub(super) fn keep_short() {
    let Some(path) = PATH.get() else {
        return;
    };
    let Ok(path) = path.lock() else {
        return;
    };
    if is_long() {
        let _ = set_aside(&path);
    }
}

fn is_long() -> bool {
    let length = rustix::fs::fstat(io::stderr()).map(|it| u64::try_from(it.st_size));
    length.is_ok_and(|it| it.is_ok_and(|it| it > BYTES_MAX))
}

fn set_aside(path: &Path) -> io::Result<()> {
    fs::rename(path, path.with_extension("old.log"))?;
    rustix::stdio::dup2_stderr(open(path)?)?;
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)
}
