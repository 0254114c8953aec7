//! The file of `--output-last-message`.
//!
//! The model can write the workspace while the turn runs, and the answer is written outside the sandbox. So the
//! folder is opened before the turn, and a new file is renamed over the name: a link there is replaced, not followed.

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

/// A file that the answer can be written to.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A name in a folder, which a new file takes.
    Name {
        folder: OwnedFd,
        name: OsString,
        /// The ordinary file that had the name before the turn.
        there: Option<File>,
    },
    /// A pipe, a device, or a file that cannot be replaced, opened as it was before the turn.
    Opened(OwnedFd),
}

impl OutputFile {
    /// Finds out before the turn whether the answer can be written. The file stays as it is.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let target = target(path).map_err(|error| {
            let shown = path.display();
            format!("cannot write --output-last-message {shown}: {error}")
        })?;
        let path = path.to_owned();
        Ok(Self { path, target })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, answer: &str) -> io::Result<()> {
        let (folder, name, there) = match &self.target {
            Target::Opened(opened) => return write_into(opened.as_raw_fd(), answer),
            Target::Name {
                folder,
                name,
                there,
            } => (folder, name, there.as_ref()),
        };
        let (beside, mut file) = make_beside(folder)?;
        let replaced = file
            .write_all(answer.as_bytes())
            .and_then(|()| take_after(&file, there))
            .and_then(|()| Ok(renameat(folder, &*beside, folder, &**name)?));
        let Err(error) = replaced else {
            return Ok(());
        };
        let _ = unlinkat(folder, &*beside, AtFlags::empty());
        match there {
            // Something is mounted on the file, as containers do.
            Some(there) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                write_into(there.as_raw_fd(), answer)
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
    // `/dev/stdout` and what the shell makes of `>(…)` are links, which no sandboxed command can write.
    if (real == Path::new("/dev") || real.starts_with("/proc")) && path.exists() {
        accessat(CWD, path, Access::WRITE_OK, AtFlags::empty())?;
        return Ok(Target::Opened(openat(CWD, path, look, Mode::empty())?));
    }
    let kind = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(kind(&stat)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let there = match kind {
        None | Some(FileType::Symlink) => None,
        Some(FileType::RegularFile) => {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Some(File::from(openat(&folder, name, flags, Mode::empty())?))
        }
        // To open a pipe for writing is to begin to write to it.
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
    match (make_beside(&folder), there) {
        (Ok((beside, _)), there) => {
            unlinkat(&folder, &*beside, AtFlags::empty())?;
            let name = name.to_owned();
            Ok(Target::Name {
                folder,
                name,
                there,
            })
        }
        // The file can be written and the folder cannot.
        (Err(_), Some(there)) => Ok(Target::Opened(there.into())),
        (Err(error), None) => Err(error),
    }
}

/// Makes an empty file in a folder, under a name that was free.
fn make_beside(folder: &OwnedFd) -> io::Result<(OsString, File)> {
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

/// Gives a new file the mode of the one that it replaces, and its owner where that is possible.
fn take_after(file: &File, there: Option<&File>) -> io::Result<()> {
    let Some(there) = there else {
        return Ok(());
    };
    let there = there.metadata()?;
    let (user, group) = (Uid::from_raw(there.uid()), Gid::from_raw(there.gid()));
    let _ = fchown(file, Some(user), Some(group));
    Ok(fchmod(file, Mode::from_raw_mode(there.mode() & 0o777))?)
}

/// Writes to what a descriptor stands for, from its beginning.
fn write_into(descriptor: i32, answer: &str) -> io::Result<()> {
    fs::write(by_number(descriptor), answer)
}

fn by_number(descriptor: i32) -> PathBuf {
    format!("/proc/self/fd/{descriptor}").into()
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
