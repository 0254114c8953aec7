//! Private files with one JSON value in each line, to which lines are appended.
//!
//! A line survives the process that appended it. A line that is cut off, by a full disk or a power
//! failure, is ignored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the values of all lines; none if there is no file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = text.split(|it| *it == b'\n');
    Ok(lines
        .filter_map(|it| serde_json::from_slice(it).ok())
        .collect())
}

/// Appends values. Returns the file, which is not synchronised.
pub(super) fn append<T: Serialize>(
    path: &Path,
    values: impl Iterator<Item = T>,
) -> io::Result<File> {
    // An earlier line may have been cut off.
    let mut lines = vec![b'\n'];
    for value in values {
        serde_json::to_writer(&mut lines, &value)?;
        lines.push(b'\n');
    }
    let options = &mut OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(&lines)?;
    Ok(file)
}

/// Creates a folder, and those above it, which only the user can enter.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}
