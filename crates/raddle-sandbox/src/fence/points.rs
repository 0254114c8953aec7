//! Empty folders that are made so that a protected name is taken, and that go when nobody needs them.
//!
//! What is mounted on a folder in one fence comes off when the folder is removed outside, so a folder is
//! removed only by the last of the fences that stand on it: each holds a shared lock on it, and whoever
//! gets the lock alone removes it. Ours are told from others by their mode, so that one that was left
//! behind by a crash goes with the next fence that meets it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Refused;

/// The sticky bit means nothing on a folder that only its owner can write, so nobody else sets it.
const MODE: u32 = 0o1755;
const FILE_MODE: u32 = 0o1444;

/// How often a folder is made anew that someone removes at the same moment.
const TRIES: usize = 100;

/// The folders that one fence stands on.
#[derive(Debug, Default)]
pub(super) struct Points(Vec<(PathBuf, File)>);

impl Points {
    /// Makes the folder, if it is not there, and holds it. `false` if it cannot be made because nobody of this
    /// user can make anything there.
    pub fn take(&mut self, path: &Path) -> Result<bool, Refused> {
        let disk = |source| Refused::Disk {
            path: path.to_owned(),
            source,
        };
        for _ in 0..TRIES {
            let made = match fs::create_dir(path) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) if is_closed(&error) => return Ok(false),
                Err(error) => return Err(disk(error)),
            };
            if let Some(folder) = hold(path, libc::O_DIRECTORY).map_err(disk)? {
                if made {
                    folder
                        .set_permissions(Permissions::from_mode(MODE))
                        .map_err(disk)?;
                }
                self.0.push((path.to_owned(), folder));
                return Ok(true);
            }
        }
        Err(disk(io::Error::other("someone removes it again and again")))
    }
}

impl Points {
    /// The same for an empty file, where a folder would be an error to whoever reads it.
    pub fn take_file(&mut self, path: &Path) -> Result<bool, Refused> {
        let disk = |source| Refused::Disk {
            path: path.to_owned(),
            source,
        };
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(FILE_MODE);
            let made = match options.open(path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) if is_closed(&error) => return Ok(false),
                Err(error) => return Err(disk(error)),
            };
            if let Some(file) = &made {
                file.set_permissions(Permissions::from_mode(FILE_MODE))
                    .map_err(disk)?;
            }
            if let Some(file) = hold(path, libc::O_NONBLOCK).map_err(disk)? {
                self.0.push((path.to_owned(), file));
                return Ok(true);
            }
        }
        Err(disk(io::Error::other("someone removes it again and again")))
    }
}

impl Drop for Points {
    fn drop(&mut self) {
        for (path, folder) in self.0.drain(..) {
            let Ok(found) = folder.metadata() else {
                continue;
            };
            // Another file may have its name by now.
            let same = |it: fs::Metadata| (it.dev(), it.ino()) == (found.dev(), found.ino());
            if is_placeholder(&found)
                && fs::symlink_metadata(&path).is_ok_and(same)
                && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                // A folder stays if something is in it: then someone else uses it by now.
                let _ = match found.is_dir() {
                    true => fs::remove_dir(path),
                    false => fs::remove_file(path),
                };
            }
        }
    }
}

/// Whether it was made here, by this process or another.
pub(super) fn is_placeholder(found: &fs::Metadata) -> bool {
    let mode = found.mode() & 0o7777;
    match found.is_dir() {
        true => mode == MODE,
        false => found.is_file() && mode == FILE_MODE && found.len() == 0,
    }
}

/// Locks the folder, unless it has gone meanwhile.
fn hold(path: &Path, flags: i32) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags | libc::O_NOFOLLOW);
    let folder = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // Ours are held alone only for a moment, and a command that holds one for longer must not hold us up.
    let mut tries = 0;
    while let Err(error) = flock(&folder, FlockOperation::NonBlockingLockShared) {
        tries += 1;
        if error != Errno::WOULDBLOCK || tries > TRIES {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let held = folder.metadata()?;
    let still =
        fs::symlink_metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (held.dev(), held.ino()));
    Ok(still.then_some(folder))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_removes_what_was_made() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join(".codex");
        let (mut first, mut second) = (Points::default(), Points::default());
        assert!(first.take(&path).expect("it is made"));
        assert!(second.take(&path).expect("it is there"));
        drop(first);
        assert!(path.exists(), "the second still stands on it");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_used_or_was_there_before_stays() {
        let root = tempfile::tempdir().expect("a folder");
        let (used, own) = (root.path().join("used"), root.path().join("own"));
        fs::create_dir(&own).expect("made by the user");
        let mut points = Points::default();
        assert!(points.take(&used).expect("it is made"));
        assert!(points.take(&own).expect("it is there"));
        fs::write(used.join("file"), "").expect("it is written");
        drop(points);
        assert!(used.exists() && own.exists());
    }

    #[test]
    fn a_file_goes_while_it_is_empty() {
        let root = tempfile::tempdir().expect("a folder");
        let (empty, used) = (root.path().join("empty"), root.path().join("used"));
        let mut points = Points::default();
        assert!(points.take_file(&empty).expect("it is made"));
        assert!(points.take_file(&used).expect("it is made"));
        fs::remove_file(&used).expect("it is removed");
        fs::write(&used, "by the user").expect("it is written");
        drop(points);
        assert!(!empty.exists() && used.exists());
    }

    #[test]
    fn what_a_crash_left_goes_with_the_next_fence() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join(".raddle");
        fs::create_dir(&path).expect("it is made");
        fs::set_permissions(&path, Permissions::from_mode(MODE)).expect("it is marked");
        let mut next = Points::default();
        assert!(next.take(&path).expect("it is there"));
        drop(next);
        assert!(!path.exists());
    }
}
