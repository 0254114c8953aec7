//! A log in a file. It receives everything written to stderr, including panic messages.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// Limit: the log file of a daemon; the previous file is kept beside it; beyond it, the previous
/// file is deleted.
const BYTES_MAX: u64 = 8 << 20;

/// The path of the log. Locked while the file is rotated.
static PATH: OnceLock<Mutex<PathBuf>> = OnceLock::new();

pub(super) fn move_to(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    rustix::stdio::dup2_stderr(&file)?;
    let _ = PATH.set(Mutex::new(path.to_owned()));
    keep_short();
    Ok(())
}

/// Whether the log goes to a file.
pub(super) fn is_open() -> bool {
    PATH.get().is_some()
}

/// Rotates the file if it is long. On failure it grows further: the error cannot be reported
/// anywhere.
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
