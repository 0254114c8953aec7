//! The file system as the client's own user sees it. It is the person's, not the agent's: nothing
//! here is fenced, and nothing the model does comes this way.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// Copies a folder and everything in it. Links are copied as links.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_any(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies a file, a link or a folder.
pub(crate) fn copy_any(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        copy_folder(from, to)
    } else {
        fs::copy(from, to).map(drop)
    }
}
