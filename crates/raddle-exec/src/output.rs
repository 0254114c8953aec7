//! The file of `--output-last-message`.
//!
//! The model can write the workspace while the turn runs, and the answer is written outside the
//! sandbox. So the folder is opened before the turn, and a new file is renamed over the name: a
//! link there is replaced, not followed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, accessat, fchmod, fchown, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::error::UsageError;

/// A file that the answer can be written to.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A name in a folder, over which a new file is renamed.
    Name {
        folder: OwnedFd,
        name: OsString,
        /// The regular file that had the name before the turn.
        existing: Option<File>,
    },
    /// A pipe, a device, or a file that cannot be replaced, opened before the turn.
    Opened(OwnedFd),
}

impl OutputFile {
    /// Checks before the turn that the answer can be written. Leaves the file unchanged.
    pub(crate) fn open(path: &Path) -> Result<Self, UsageError> {
        let purpose = "cannot write --output-last-message";
        let target = target(path).map_err(|error| UsageError::path(purpose, path, error))?;
        let path = path.to_owned();
        Ok(Self { path, target })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, answer: &str) -> io::Result<()> {
        let (folder, name, existing) = match &self.target {
            Target::Opened(opened) => return write_into(opened.as_raw_fd(), answer),
            Target::Name {
                folder,
                name,
                existing,
            } => (folder, name, existing.as_ref()),
        };
        let (temp_name, mut file) = create_temp_file(folder)?;
        let replaced = file
            .write_all(answer.as_bytes())
            .and_then(|()| copy_metadata(&file, existing))
            .and_then(|()| Ok(renameat(folder, &*temp_name, folder, &**name)?));
        let Err(error) = replaced else {
            return Ok(());
        };
        let _ = unlinkat(folder, &*temp_name, AtFlags::empty());
        match existing {
            // A mount on the file, as in containers, prevents the rename.
            Some(existing) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                write_into(existing.as_raw_fd(), answer)
            }
            _ => Err(error),
        }
    }
}

fn target(path: &Path) -> io::Result<Target> {
    let is_folder = || io::Error::from(io::ErrorKind::IsADirectory);
    let name = path.file_name().ok_or_else(is_folder)?;
    if path.as_os_str().as_bytes().ends_with(b"/") || path.is_dir() {
        return Err(is_folder());
    }
    let parent = path.parent().filter(|it| *it != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    let look = OFlags::PATH | OFlags::CLOEXEC;
    let folder = openat(CWD, parent, look | OFlags::DIRECTORY, Mode::empty())?;
    let real = fs::canonicalize(parent)?;
    // `/dev/stdout` and the shell's `>(…)` are links, which no sandboxed command can write.
    if (real == Path::new("/dev") || real.starts_with("/proc")) && path.exists() {
        accessat(CWD, path, Access::WRITE_OK, AtFlags::empty())?;
        return Ok(Target::Opened(openat(CWD, path, look, Mode::empty())?));
    }
    let kind = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(kind(&stat)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let existing = match kind {
        None | Some(FileType::Symlink) => None,
        Some(FileType::RegularFile) => {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Some(File::from(openat(&folder, name, flags, Mode::empty())?))
        }
        // Opening a pipe for writing already has an effect on its reader.
        Some(_) => {
            let opened = openat(&folder, name, look | OFlags::NOFOLLOW, Mode::empty())?;
            accessat(
                CWD,
                by_number(opened.as_raw_fd()),
                Access::WRITE_OK,
                AtFlags::empty(),
            )?;
            return Ok(Target::Opened(opened));
        }
    };
    match (create_temp_file(&folder), existing) {
        (Ok((temp_name, _)), existing) => {
            unlinkat(&folder, &*temp_name, AtFlags::empty())?;
            let name = name.to_owned();
            Ok(Target::Name {
                folder,
                name,
                existing,
            })
        }
        // The file is writable, but the folder is not.
        (Err(_), Some(existing)) => Ok(Target::Opened(existing.into())),
        (Err(error), None) => Err(error),
    }
}

/// Creates an empty file in a folder, under an unused name.
fn create_temp_file(folder: &OwnedFd) -> io::Result<(OsString, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    for number in 0..100 {
        let name = format!(".raddle-answer-{}-{number}", std::process::id());
        match openat(folder, &*name, flags, mode) {
            Ok(file) => return Ok((name.into(), file.into())),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Gives a new file the mode of the file it replaces, and its owner where possible.
fn copy_metadata(file: &File, existing: Option<&File>) -> io::Result<()> {
    let Some(existing) = existing else {
        return Ok(());
    };
    let existing = existing.metadata()?;
    let (user, group) = (Uid::from_raw(existing.uid()), Gid::from_raw(existing.gid()));
    let _ = fchown(file, Some(user), Some(group));
    Ok(fchmod(file, Mode::from_raw_mode(existing.mode() & 0o777))?)
}

/// Writes to the file behind a descriptor, from its beginning.
fn write_into(descriptor: i32, answer: &str) -> io::Result<()> {
    fs::write(by_number(descriptor), answer)
}

fn by_number(descriptor: i32) -> PathBuf {
    format!("/proc/self/fd/{descriptor}").into()
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
