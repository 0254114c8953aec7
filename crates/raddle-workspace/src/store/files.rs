//! Files of the store: private, and written whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::Error;

/// Suffix of a file that is being written.
pub(super) const TEMPORARY: &str = "tmp";

/// Creates a folder that only the user can enter. Its parents are made likewise.
pub(super) fn create_folder(folder: &Path) -> Result<(), Error> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|it| Error::disk(folder, it))
}

/// Opens a file that only the user can read, and creates it if there is none.
pub(super) fn create_private(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let opened = options.create(true).mode(0o600).open(path);
    opened.map_err(|it| Error::disk(path, it))
}

/// Lists the complete files of a folder in the order of their names.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = list_all(folder)?;
    paths.retain(|it| !is_temporary(it));
    paths.sort();
    Ok(paths)
}

/// Removes what a process left when it was killed while it wrote.
pub(super) fn remove_temporary(folder: &Path) -> Result<(), Error> {
    for path in list_all(folder)?.iter().filter(|it| is_temporary(it)) {
        fs::remove_file(path).map_err(|it| Error::disk(path, it))?;
    }
    Ok(())
}

fn list_all(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|it| it.map(|it| it.path()));
        paths.collect::<io::Result<Vec<_>>>()
    });
    listed.map_err(|it| Error::disk(folder, it))
}

fn is_temporary(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(TEMPORARY))
}

/// Writes a file that a power failure leaves whole or absent.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_as(path, bytes, File::sync_all)?;
    sync_folder_of(path)
}

/// Writes a file that the death of the process leaves whole or as it was.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_as(path, bytes, |_| Ok(()))
}

fn write_as(
    path: &Path,
    bytes: &[u8],
    sync: impl Fn(&File) -> io::Result<()>,
) -> Result<(), Error> {
    let temporary = path.with_extension(TEMPORARY);
    let mut file = create_private(&temporary, OpenOptions::new().write(true).truncate(true))?;
    let written = file
        .write_all(bytes)
        .and_then(|()| sync(&file))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|it| {
        let _ = fs::remove_file(&temporary);
        Error::disk(path, it)
    })
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    let synced = File::open(folder).and_then(|it| it.sync_all());
    synced.map_err(|it| Error::disk(folder, it))
}
