//! The file system as the client's own user sees it. It is the person's, not the agent's: nothing
//! here is fenced, and nothing the model does comes this way.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;

use crate::wire_error::{WireError, shown};

/// An absolute path; anything else is refused.
pub(crate) fn absolute(path: &str) -> Result<PathBuf, WireError> {
    if Path::new(path).is_absolute() && !path.contains('\0') {
        Ok(path.into())
    } else {
        Err(WireError::InvalidRequest(format!(
            "path must be absolute: {}",
            shown(path)
        )))
    }
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
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), WireError> {
    // Looked at first, because to open a device may already do something.
    refuse_special(path, &fs::metadata(path)?)?;
    let file = File::options()
        .read(true)
        .custom_flags(AT_ONCE)
        .open(path)?;
    let metadata = file.metadata()?;
    refuse_special(path, &metadata)?;
    Ok((file, metadata))
}

/// Makes a file, or opens and empties one that is there. Only a regular one, as for reading.
pub(crate) fn create(path: &Path, mode: u32) -> Result<File, WireError> {
    match fs::metadata(path) {
        Ok(metadata) => refuse_special(path, &metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(mode)
        .custom_flags(AT_ONCE)
        .open(path)?;
    refuse_special(path, &file.metadata()?)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opening does not wait for anyone at the other end, nor does a terminal become ours.
const AT_ONCE: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();

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

/// Copies a folder and everything in it. Links are copied as links.
fn copy_folder(from: &Path, to: &Path) -> Result<(), WireError> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_any(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies a file, a link or a folder.
pub(crate) fn copy_any(from: &Path, to: &Path) -> Result<(), WireError> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return Ok(std::os::unix::fs::symlink(fs::read_link(from)?, to)?);
    }
    if kind.is_dir() {
        return copy_folder(from, to);
    }
    let (mut from, metadata) = open(from)?;
    let mut to = create(to, metadata.mode())?;
    io::copy(&mut from, &mut to)?;
    // One that was there takes on the mode too.
    Ok(to.set_permissions(metadata.permissions())?)
}
