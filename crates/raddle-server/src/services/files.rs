//! The file system as the client's own user sees it, but for what [`PathAdmission`] closes. It is the
//! person's, not the agent's: nothing here is fenced, and nothing the model does comes this way.

mod admission;
mod copies;
mod file_locks;
mod removals;
mod write_paths;

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;

use self::admission::AdmittedPath;
pub(crate) use self::admission::{PathAdmission, secret_files};
pub(crate) use self::copies::copy_any;
pub(crate) use self::file_locks::FileLock;
pub(crate) use self::write_paths::LastLink;
use crate::wire_error::{WireError, shown};

/// The longest path. No system takes a longer one, and to go through all the folders above a path of
/// megabytes would take hours.
const PATH_BYTES_MAX: usize = 4096;

/// An absolute path; anything else is refused.
pub(crate) fn absolute(path: &str) -> Result<PathBuf, WireError> {
    refuse_too_long(path)?;
    if Path::new(path).is_absolute() && !path.contains('\0') {
        Ok(path.into())
    } else {
        Err(WireError::InvalidRequest(format!(
            "path must be absolute: {}",
            shown(path)
        )))
    }
}

/// Refuses a path that no system takes.
pub(crate) fn refuse_too_long(path: &str) -> Result<(), WireError> {
    if path.len() <= PATH_BYTES_MAX {
        return Ok(());
    }
    Err(WireError::InvalidRequest(format!(
        "a path may have {PATH_BYTES_MAX} bytes, not {}: {}",
        path.len(),
        shown(path)
    )))
}

/// Milliseconds since the epoch; zero where the file system does not know.
pub(crate) fn millis(time: io::Result<SystemTime>) -> i64 {
    time.ok()
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

/// Whether a copy would land on or inside what is copied, by whatever names both go. Such a copy
/// of a folder would never end, and one of a file would empty it.
pub(crate) fn lands_in(from: &Path, to: &Path) -> io::Result<bool> {
    let source = fs::symlink_metadata(from)?;
    let is_source = |path: &Path| {
        fs::metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (source.dev(), source.ino()))
    };
    let nearest = to
        .ancestors()
        .find_map(|folder| fs::canonicalize(folder).ok());
    Ok(nearest.is_some_and(|nearest| nearest.ancestors().any(is_source)))
}

/// Opens a file for reading. Only a regular one: a pipe may have nobody at its other end and a device
/// may have none, and either would keep a thread for ever.
pub(crate) fn open(path: &Path, admission: &PathAdmission) -> Result<(File, Metadata), WireError> {
    admission.open(path)?.file(path)
}

impl AdmittedPath {
    /// The file, to read it. The path is how it was asked for.
    pub(crate) fn file(&self, asked: &Path) -> Result<(File, Metadata), WireError> {
        // Looked at first, because to open a device may already do something.
        refuse_special(asked, &self.metadata()?)?;
        let file = File::options()
            .read(true)
            .custom_flags(AT_ONCE.bits().cast_signed())
            .open(self.path())?;
        let metadata = file.metadata()?;
        refuse_special(asked, &metadata)?;
        Ok((file, metadata))
    }
}

/// Writes a whole file, which is made if it is not there.
pub(crate) fn write(path: &Path, bytes: &[u8], admission: &PathAdmission) -> Result<(), WireError> {
    let place = admission.place(path, LastLink::Follow)?;
    let (mut file, metadata) = place.create(0o666, admission)?;
    let _stay = FileLock::to_write(&metadata)?;
    file.set_len(0)?;
    Ok(file.write_all(bytes)?)
}

/// Opening does not wait for anyone at the other end, nor does a terminal become ours.
const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Folders pass: what is done with them as files, the system refuses.
fn refuse_special(path: &Path, metadata: &Metadata) -> Result<(), WireError> {
    let kind = metadata.file_type();
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(WireError::SpecialFile { path, what })
}
