//! The file system as the client's own user sees it, except for what [`PathAdmission`] closes. It
//! serves the user, not the agent: there is no sandbox here, and no tool of the model comes this
//! way.

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
use crate::wire_error::{WireError, quoted};

/// Limit: a path in a request; beyond it, the server rejects the request with -32600.
///
/// No system accepts a longer one, and walking all the folders above a path of megabytes would take
/// hours.
const PATH_BYTES_MAX: usize = 4096;

/// The maximum number of folders in `cwds` of one request.
const CWDS_MAX: usize = 64;

/// Returns an absolute path; rejects anything else.
pub(crate) fn absolute(path: &str) -> Result<PathBuf, WireError> {
    refuse_too_long(path)?;
    if Path::new(path).is_absolute() && !path.contains('\0') {
        Ok(path.into())
    } else {
        Err(WireError::InvalidRequest(format!(
            "path must be absolute: {}",
            quoted(path)
        )))
    }
}

/// Rejects a path that is too long for any system.
pub(crate) fn refuse_too_long(path: &str) -> Result<(), WireError> {
    if path.len() <= PATH_BYTES_MAX {
        return Ok(());
    }
    Err(WireError::InvalidRequest(format!(
        "a path may have {PATH_BYTES_MAX} bytes, not {}: {}",
        path.len(),
        quoted(path)
    )))
}

/// Rejects more folders than one request may list, and paths that are too long.
pub(crate) fn check_cwds(cwds: &[String]) -> Result<(), WireError> {
    if cwds.len() > CWDS_MAX {
        let what = format!("cwds has more than {CWDS_MAX} folders");
        return Err(WireError::Refused(what.into()));
    }
    cwds.iter().try_for_each(|it| refuse_too_long(it))
}

/// Returns milliseconds since the epoch; zero where the file system does not know.
pub(crate) fn millis(time: io::Result<SystemTime>) -> i64 {
    time.ok()
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

/// Whether a copy would land on or inside its source, under any name. Such a copy of a folder would
/// never end, and one of a file would empty it.
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

/// Opens a file for reading. Only a regular one: a pipe or a device may never deliver data, and
/// would block a thread for ever.
pub(crate) fn open(path: &Path, admission: &PathAdmission) -> Result<(File, Metadata), WireError> {
    admission.open(path)?.file(path)
}

impl AdmittedPath {
    /// Opens the file for reading. `requested` is the path for error messages.
    pub(crate) fn file(&self, requested: &Path) -> Result<(File, Metadata), WireError> {
        // Checked first, because opening a device may already have an effect.
        refuse_special(requested, &self.metadata()?)?;
        let file = File::options()
            .read(true)
            .custom_flags(NONBLOCKING.bits().cast_signed())
            .open(self.path())?;
        let metadata = file.metadata()?;
        refuse_special(requested, &metadata)?;
        Ok((file, metadata))
    }
}

/// Writes a whole file, and creates it if it is missing.
pub(crate) fn write(path: &Path, bytes: &[u8], admission: &PathAdmission) -> Result<(), WireError> {
    let write_path = admission.write_path(path, LastLink::Follow)?;
    let (mut file, metadata) = write_path.create(0o666, admission)?;
    let _lock = FileLock::to_write(&metadata)?;
    file.set_len(0)?;
    Ok(file.write_all(bytes)?)
}

/// Opens without waiting for a peer, and without acquiring a controlling terminal.
const NONBLOCKING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Rejects special files. Folders pass: the system rejects using them as files.
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
