//! Opens files that may have changed since they were checked.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::error::ToolError;
use super::walk::{self, Kind};

/// Limit: a file that a file tool loads; beyond it, the call is rejected, and the model is
/// notified.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;

/// Contents and mode of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// All bytes of the file.
    pub bytes: Vec<u8>,
    /// Permission bits, as in `chmod`.
    pub mode: u32,
}

impl Contents {
    /// Returns the contents of a new file.
    pub(crate) fn new(text: String) -> Self {
        let bytes = text.into_bytes();
        Self { bytes, mode: 0o644 }
    }

    /// Returns the contents as text, unless they are binary.
    pub fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        (!text.contains('\0')).then_some(text)
    }
}

/// Opens a regular file in a folder; `None` if there is none. It never blocks on other kinds of
/// files.
pub(crate) fn open_file(
    folder: &OwnedFd,
    name: &OsStr,
    shown: &Path,
) -> Result<Option<(File, Stat)>, ToolError> {
    let disk_error = |error| disk(shown, error);
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(disk_error(error)),
        Ok(stat) => refuse_unless_file(Kind::of(&stat), shown)?,
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = match openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(disk_error(error)),
    };
    let stat = fstat(&opened).map_err(disk_error)?;
    refuse_unless_file(Kind::of(&stat), shown)?;
    if walk::is_procfs(&opened).map_err(disk_error)? {
        return Err(ToolError::Hidden(shown.to_owned()));
    }
    Ok(Some((File::from(opened), stat)))
}

/// Reads a whole file.
pub(crate) fn contents(file: File, stat: &Stat, shown: &Path) -> Result<Contents, ToolError> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| ToolError::Disk {
        path: shown.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ToolError::TooLarge {
            path: shown.to_owned(),
            bytes: u64::try_from(stat.st_size)
                .unwrap_or(0)
                .max(bytes.len() as u64),
            max: FILE_BYTES_MAX,
        });
    }
    Ok(Contents {
        bytes,
        mode: stat.st_mode & 0o7777,
    })
}

pub(crate) fn refuse_unless_file(kind: Kind, shown: &Path) -> Result<(), ToolError> {
    let path = shown.to_owned();
    match kind {
        Kind::File => Ok(()),
        Kind::Missing => Err(ToolError::Missing(path)),
        Kind::Folder => Err(ToolError::Folder(path)),
        Kind::Link => Err(ToolError::Link(path)),
        Kind::Special(what) => Err(ToolError::Special { path, what }),
    }
}

pub(crate) fn disk(path: &Path, error: Errno) -> ToolError {
    ToolError::Disk {
        path: path.to_owned(),
        source: error.into(),
    }
}
