//! Empty folders that are made so that a protected name is taken, and that go when nobody needs them.
//!
//! What is mounted on a folder in one fence comes off when the folder is removed outside, so a folder is
//! removed only by the last of the fences that stand on it: each holds a shared lock on it, and whoever
//! gets the lock alone removes it. Ours are told from others by their mode, so that one that was left
//! behind by a crash goes with the next fence that meets it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{SandboxRefusal, safe_open};

/// The sticky bit means nothing on a folder that only its owner can write, so nobody else sets it.
const MODE: u32 = 0o1755;
const FILE_MODE: u32 = 0o1444;

/// How often a folder is made anew that someone removes at the same moment.
const TRIES: usize = 100;

/// The folders that one fence stands on.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Vec<Placeholder>);

/// A name that is taken. It is made, looked at and removed below a descriptor of the folder around it: a command
/// may exchange any folder on the way to it for a link, and nothing is to happen where that leads.
#[derive(Debug)]
struct Placeholder {
    around: Arc<OwnedFd>,
    name: OsString,
    lock: File,
}

impl Placeholders {
    /// Makes the folder at a plain path, if it is not there, and holds it. `false` if it cannot be made because nobody
    /// of this user can make anything there.
    pub fn take(&mut self, path: &Path) -> Result<bool, SandboxRefusal> {
        match self.open_around(path)? {
            Some(around) => self.take_in(&around, path),
            None => Ok(false),
        }
    }

    /// The same in a folder that was opened before, whatever has its path by now.
    pub fn take_in(&mut self, around: &Arc<OwnedFd>, path: &Path) -> Result<bool, SandboxRefusal> {
        self.take_made(around, path, OFlags::DIRECTORY, |around, name| {
            mkdirat(around, name, Mode::from_raw_mode(0o755)).map(|()| None)
        })
    }

    /// The same for an empty file, where a folder would be an error to whoever reads it.
    pub fn take_file(&mut self, path: &Path) -> Result<bool, SandboxRefusal> {
        let Some(around) = self.open_around(path)? else {
            return Ok(false);
        };
        self.take_made(&around, path, OFlags::NONBLOCK, |around, name| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(around, name, flags, Mode::from_raw_mode(FILE_MODE))?;
            Ok(Some(made.into()))
        })
    }

    /// The folder around a path, with no link followed. Nothing if nobody of this user can enter it.
    fn open_around(&self, path: &Path) -> Result<Option<Arc<OwnedFd>>, SandboxRefusal> {
        let disk = |source| disk(path, source);
        let around = path.parent().ok_or(io::ErrorKind::InvalidInput.into());
        match around.and_then(safe_open::folder) {
            Ok(opened) => self.shared(opened).map(Some).map_err(disk),
            Err(error) if is_closed(&error) => Ok(None),
            Err(error) => Err(disk(error)),
        }
    }

    /// `make` makes what `flags` open, and returns it if it opens it on the way.
    fn take_made(
        &mut self,
        around: &Arc<OwnedFd>,
        path: &Path,
        flags: OFlags,
        make: impl Fn(&OwnedFd, &OsStr) -> rustix::io::Result<Option<File>>,
    ) -> Result<bool, SandboxRefusal> {
        let disk = |source| disk(path, source);
        let name = path.file_name();
        let name = name.ok_or_else(|| disk(io::ErrorKind::InvalidInput.into()))?;
        for _ in 0..TRIES {
            let made = match make(around, name).map_err(io::Error::from) {
                Ok(made) => Some(made),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) if is_closed(&error) => return Ok(false),
                Err(error) => return Err(disk(error)),
            };
            if let Some(Some(file)) = &made {
                file.set_permissions(Permissions::from_mode(FILE_MODE))
                    .map_err(disk)?;
            }
            if let Some(held) = hold(around, name, flags).map_err(disk)? {
                if made.is_some_and(|it| it.is_none()) {
                    held.set_permissions(Permissions::from_mode(MODE))
                        .map_err(disk)?;
                }
                self.0.push(Placeholder {
                    around: around.clone(),
                    name: name.to_owned(),
                    lock: held,
                });
                return Ok(true);
            }
        }
        Err(disk(io::Error::other("someone removes it again and again")))
    }

    /// Several in one folder need one descriptor of it.
    fn shared(&self, opened: OwnedFd) -> io::Result<Arc<OwnedFd>> {
        let found = fstat(&opened)?;
        let earlier = self.0.last().map(|it| &it.around);
        let same = earlier.filter(|it| {
            fstat(it).is_ok_and(|it| (it.st_dev, it.st_ino) == (found.st_dev, found.st_ino))
        });
        Ok(same.map_or_else(|| Arc::new(opened), Arc::clone))
    }
}

impl Placeholder {
    /// Removes it, if it was made here, nobody else stands on it, and it is empty.
    fn remove(&self) -> io::Result<()> {
        let found = self.lock.metadata()?;
        // Another file may have its name by now.
        if is_placeholder(&found) && is_at(&self.around, &self.name, &found) {
            flock(&self.lock, FlockOperation::NonBlockingLockExclusive)?;
            // A folder stays if something is in it: then someone else uses it by now. What a command puts at the
            // name at this moment is in a folder that it may write, and it could remove that itself.
            let flags = match found.is_dir() {
                true => AtFlags::REMOVEDIR,
                false => AtFlags::empty(),
            };
            unlinkat(&*self.around, &*self.name, flags)?;
        }
        Ok(())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for placeholder in self.0.drain(..) {
            let _ = placeholder.remove();
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

/// Whether a name in a folder is that of this file.
fn is_at(around: &OwnedFd, name: &OsStr, file: &fs::Metadata) -> bool {
    statat(around, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| (it.st_dev, it.st_ino) == (file.dev(), file.ino()))
}

/// Locks the folder, unless it has gone meanwhile.
fn hold(around: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    let folder: File = match openat(around, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?.into(),
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
    Ok(is_at(around, name, &held).then_some(folder))
}

fn disk(path: &Path, source: io::Error) -> SandboxRefusal {
    SandboxRefusal::Disk {
        path: path.to_owned(),
        source,
    }
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
        let (mut first, mut second) = (Placeholders::default(), Placeholders::default());
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
        let mut points = Placeholders::default();
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
        let mut points = Placeholders::default();
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
        let mut next = Placeholders::default();
        assert!(next.take(&path).expect("it is there"));
        drop(next);
        assert!(!path.exists());
    }

    /// A sandboxed command may exchange a folder for a link to anywhere at any moment.
    #[test]
    fn nothing_is_made_or_removed_through_a_link() {
        let root = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(root.path()).expect("its plain path");
        let at = |name: &str| root.join(name);
        for name in ["d", "own"] {
            fs::create_dir_all(at(name)).expect("it is made");
        }
        std::os::unix::fs::symlink("own", at("link")).expect("a link");
        let mut points = Placeholders::default();
        let _ = points.take(&at("link/folder"));
        let _ = points.take_file(&at("link/file"));
        let made = fs::read_dir(at("own")).expect("it is there").count();
        assert_eq!(made, 0, "nothing is made where the link leads");

        assert!(points.take_file(&at("d/rules")).expect("it is made"));
        // The same file by another name stands for the moment between the look and the removal.
        fs::hard_link(at("d/rules"), at("own/rules")).expect("another name");
        fs::rename(at("d"), at("moved")).expect("it is moved");
        std::os::unix::fs::symlink("own", at("d")).expect("a link");
        drop(points);
        assert!(at("own/rules").exists(), "it was removed through a link");
        assert!(
            !at("moved/rules").exists(),
            "it goes wherever its folder is"
        );
    }
}
