//! Empty folders that occupy protected names, and that are removed when no sandbox needs them.
//!
//! A mount on a folder disappears when the folder is removed outside, so only the last sandbox that
//! uses a folder removes it: each holds a shared lock on it, and the one that gets the exclusive
//! lock removes it. The mode marks our folders, so that the next sandbox that finds one removes
//! what a crash left behind.

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

/// Marks a placeholder. The sticky bit means nothing on a folder that only its owner can write, so
/// no other program sets it.
const MODE: u32 = 0o1755;
const FILE_MODE: u32 = 0o1444;

/// Attempts to create a folder that another process removes at the same moment.
const TRIES: usize = 100;

/// The placeholders of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Vec<Placeholder>);

/// A name that is occupied. It is created, examined and removed through a descriptor of its parent:
/// a command may replace any folder on its path by a link, and the target of that link must not be
/// touched.
#[derive(Debug)]
struct Placeholder {
    parent: Arc<OwnedFd>,
    name: OsString,
    lock: File,
}

impl Placeholders {
    /// Creates the folder at a plain path, if it is missing, and locks it. Returns `false` if this
    /// user cannot create anything there, so that no command can either.
    pub fn occupy(&mut self, path: &Path) -> Result<bool, SandboxRefusal> {
        match self.open_parent(path)? {
            Some(parent) => self.occupy_in(&parent, path),
            None => Ok(false),
        }
    }

    /// Occupies a path as [`Self::occupy`] does, in a parent that was opened before. The path of
    /// the parent may lead elsewhere by now.
    pub fn occupy_in(
        &mut self,
        parent: &Arc<OwnedFd>,
        path: &Path,
    ) -> Result<bool, SandboxRefusal> {
        self.occupy_with(parent, path, OFlags::DIRECTORY, |around, name| {
            mkdirat(around, name, Mode::from_raw_mode(0o755)).map(|()| None)
        })
    }

    /// Occupies a path with an empty file, where a folder would be an error to the program that
    /// reads it.
    pub fn occupy_with_file(&mut self, path: &Path) -> Result<bool, SandboxRefusal> {
        let Some(parent) = self.open_parent(path)? else {
            return Ok(false);
        };
        self.occupy_with(&parent, path, OFlags::NONBLOCK, |around, name| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(around, name, flags, Mode::from_raw_mode(FILE_MODE))?;
            Ok(Some(file.into()))
        })
    }

    /// Opens the parent of a path without following links. Returns `None` if this user cannot enter
    /// it.
    fn open_parent(&self, path: &Path) -> Result<Option<Arc<OwnedFd>>, SandboxRefusal> {
        let disk = |source| disk(path, source);
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput.into());
        match parent.and_then(safe_open::folder) {
            Ok(folder) => self.shared(folder).map(Some).map_err(disk),
            Err(error) if is_closed(&error) => Ok(None),
            Err(error) => Err(disk(error)),
        }
    }

    /// Creates an entry with `make` and opens it with `flags`; `make` returns the file if it opens
    /// it already.
    fn occupy_with(
        &mut self,
        parent: &Arc<OwnedFd>,
        path: &Path,
        flags: OFlags,
        make: impl Fn(&OwnedFd, &OsStr) -> rustix::io::Result<Option<File>>,
    ) -> Result<bool, SandboxRefusal> {
        let disk = |source| disk(path, source);
        let name = path.file_name();
        let name = name.ok_or_else(|| disk(io::ErrorKind::InvalidInput.into()))?;
        for _ in 0..TRIES {
            let created = match make(parent, name).map_err(io::Error::from) {
                Ok(created) => Some(created),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) if is_closed(&error) => return Ok(false),
                Err(error) => return Err(disk(error)),
            };
            if let Some(Some(file)) = &created {
                file.set_permissions(Permissions::from_mode(FILE_MODE))
                    .map_err(disk)?;
            }
            if let Some(lock) = lock_entry(parent, name, flags).map_err(disk)? {
                if created.is_some_and(|it| it.is_none()) {
                    lock.set_permissions(Permissions::from_mode(MODE))
                        .map_err(disk)?;
                }
                self.0.push(Placeholder {
                    parent: parent.clone(),
                    name: name.to_owned(),
                    lock,
                });
                return Ok(true);
            }
        }
        Err(disk(io::Error::other(
            "another process removes it repeatedly",
        )))
    }

    /// Shares one descriptor among several placeholders in the same parent.
    fn shared(&self, folder: OwnedFd) -> io::Result<Arc<OwnedFd>> {
        let stat = fstat(&folder)?;
        let earlier = self.0.last().map(|it| &it.parent);
        let same = earlier.filter(|it| {
            fstat(it).is_ok_and(|it| (it.st_dev, it.st_ino) == (stat.st_dev, stat.st_ino))
        });
        Ok(same.map_or_else(|| Arc::new(folder), Arc::clone))
    }
}

impl Placeholder {
    /// Removes the placeholder if it is one of ours, no other sandbox uses it, and it is empty.
    fn remove(&self) -> io::Result<()> {
        let metadata = self.lock.metadata()?;
        // The name may belong to another file by now.
        if is_placeholder(&metadata) && is_at(&self.parent, &self.name, &metadata) {
            flock(&self.lock, FlockOperation::NonBlockingLockExclusive)?;
            // A folder with contents stays: another program uses it by now. If a command replaces
            // the entry at this moment, it does so in a folder that it may write, and could remove
            // the entry itself.
            let flags = match metadata.is_dir() {
                true => AtFlags::REMOVEDIR,
                false => AtFlags::empty(),
            };
            unlinkat(&*self.parent, &*self.name, flags)?;
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

/// Returns whether this process or another created the entry as a placeholder.
pub(super) fn is_placeholder(metadata: &fs::Metadata) -> bool {
    let mode = metadata.mode() & 0o7777;
    match metadata.is_dir() {
        true => mode == MODE,
        false => metadata.is_file() && mode == FILE_MODE && metadata.len() == 0,
    }
}

/// Whether a name in a folder still belongs to this file.
fn is_at(parent: &OwnedFd, name: &OsStr, file: &fs::Metadata) -> bool {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| (it.st_dev, it.st_ino) == (file.dev(), file.ino()))
}

/// Locks the entry; `None` if another process removed it.
fn lock_entry(parent: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    let folder: File = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        result => result?.into(),
    };
    // Our exclusive locks last only for a moment, and a command that holds one for longer must not
    // block the server.
    let mut tries = 0;
    while let Err(error) = flock(&folder, FlockOperation::NonBlockingLockShared) {
        tries += 1;
        if error != Errno::WOULDBLOCK || tries > TRIES {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let metadata = folder.metadata()?;
    Ok(is_at(parent, name, &metadata).then_some(folder))
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
    fn the_last_user_removes_a_placeholder() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join(".codex");
        let (mut first, mut second) = (Placeholders::default(), Placeholders::default());
        assert!(first.occupy(&path).expect("it is made"));
        assert!(second.occupy(&path).expect("it is there"));
        drop(first);
        assert!(path.exists(), "the second still stands on it");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn used_and_existing_folders_stay() {
        let root = tempfile::tempdir().expect("a folder");
        let (used, own) = (root.path().join("used"), root.path().join("own"));
        fs::create_dir(&own).expect("made by the user");
        let mut placeholders = Placeholders::default();
        assert!(placeholders.occupy(&used).expect("it is made"));
        assert!(placeholders.occupy(&own).expect("it is there"));
        fs::write(used.join("file"), "").expect("it is written");
        drop(placeholders);
        assert!(used.exists() && own.exists());
    }

    #[test]
    fn a_placeholder_file_is_removed_while_it_is_empty() {
        let root = tempfile::tempdir().expect("a folder");
        let (empty, used) = (root.path().join("empty"), root.path().join("used"));
        let mut placeholders = Placeholders::default();
        assert!(placeholders.occupy_with_file(&empty).expect("it is made"));
        assert!(placeholders.occupy_with_file(&used).expect("it is made"));
        fs::remove_file(&used).expect("it is removed");
        fs::write(&used, "by the user").expect("it is written");
        drop(placeholders);
        assert!(!empty.exists() && used.exists());
    }

    #[test]
    fn stale_placeholders_are_removed_by_the_next_sandbox() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join(".raddle");
        fs::create_dir(&path).expect("it is made");
        fs::set_permissions(&path, Permissions::from_mode(MODE)).expect("it is marked");
        let mut next = Placeholders::default();
        assert!(next.occupy(&path).expect("it is there"));
        drop(next);
        assert!(!path.exists());
    }

    /// A sandboxed command may replace a folder by a link to anywhere at any moment.
    #[test]
    fn nothing_is_made_or_removed_through_a_link() {
        let root = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(root.path()).expect("its plain path");
        let at = |name: &str| root.join(name);
        for name in ["d", "own"] {
            fs::create_dir_all(at(name)).expect("it is made");
        }
        std::os::unix::fs::symlink("own", at("link")).expect("a link");
        let mut placeholders = Placeholders::default();
        let _ = placeholders.occupy(&at("link/folder"));
        let _ = placeholders.occupy_with_file(&at("link/file"));
        let count = fs::read_dir(at("own")).expect("it is there").count();
        assert_eq!(count, 0, "nothing is made where the link leads");

        assert!(
            placeholders
                .occupy_with_file(&at("d/rules"))
                .expect("it is made")
        );
        // A hard link simulates a change between the check and the removal.
        fs::hard_link(at("d/rules"), at("own/rules")).expect("another name");
        fs::rename(at("d"), at("moved")).expect("it is moved");
        std::os::unix::fs::symlink("own", at("d")).expect("a link");
        drop(placeholders);
        assert!(at("own/rules").exists(), "it was removed through a link");
        assert!(
            !at("moved/rules").exists(),
            "it goes wherever its folder is"
        );
    }
}
