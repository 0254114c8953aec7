//! Copies of files, links and whole folders.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{FileLock, LastLink, PathAdmission, open};
use crate::wire_error::{WireError, quoted};

/// Copies a file, a link, or a folder with everything in it. Links are copied as links.
pub(crate) fn copy_any(from: &Path, to: &Path, admission: &PathAdmission) -> Result<(), WireError> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if !kind.is_dir() {
        return copy_one(from, to, kind, admission);
    }
    // Pending folders are in a list, by their paths below the first, so that depth costs no stack.
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let (from, to) = (from.join(&below), to.join(&below));
        copy_folder(&from, &to, admission, |name| waiting.push(below.join(name)))
            .map_err(|error| explain(error, &from, &to))?;
    }
    Ok(())
}

/// Copies a folder with its direct contents, and reports the folders in it that remain.
fn copy_folder(
    from: &Path,
    to: &Path,
    admission: &PathAdmission,
    mut report_folder: impl FnMut(&Path),
) -> Result<(), WireError> {
    admission
        .write_path(to, LastLink::Follow)?
        .create_folders()?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            report_folder(Path::new(&name));
        } else {
            copy_one(&entry.path(), &to.join(name), kind, admission)?;
        }
    }
    Ok(())
}

/// Copies a file or a link.
fn copy_one(
    from: &Path,
    to: &Path,
    kind: FileType,
    admission: &PathAdmission,
) -> Result<(), WireError> {
    if kind.is_symlink() {
        let write_path = admission.write_path(to, LastLink::Keep)?;
        return Ok(write_path.link_to(&fs::read_link(from)?)?);
    }
    let (mut from, metadata) = open(from, admission)?;
    let write_path = admission.write_path(to, LastLink::Follow)?;
    let (mut to, target_metadata) = write_path.create(metadata.mode(), admission)?;
    let _lock = FileLock::to_copy(&metadata, &target_metadata)?;
    to.set_len(0)?;
    io::copy(&mut from, &mut to)?;
    // An existing file takes on the mode too.
    Ok(to.set_permissions(metadata.permissions())?)
}

/// Explains an error of a tree that is deeper than the longest path, with where the copy stopped.
fn explain(error: WireError, from: &Path, to: &Path) -> WireError {
    match error {
        WireError::Io(error) if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) => {
            let path = if to.as_os_str().len() > from.as_os_str().len() {
                to
            } else {
                from
            };
            let message = format!(
                "fs/copy stopped where a path is too long for the system, at {} bytes: {}",
                path.as_os_str().len(),
                quoted(&path.to_string_lossy())
            );
            WireError::Refused(message.into())
        }
        other => other,
    }
}
