//! Where the fence tries to break out of itself: a folder of its own, and a host that listens.
//!
//! Nobody removes the folder of one who was killed, so whoever measures next does. It is locked while it is
//! in use, and the kernel unlocks it for the dead.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::confinement::attempt::{self, Testbed};

/// How the names of these folders begin.
const PREFIX: &str = "raddle-self-test-";

/// How often a folder is made anew that someone removes at the same moment.
const TRIES: usize = 100;

/// A stage that is set.
pub(super) struct TestbedGuard {
    pub(super) testbed: Testbed,
    _tcp: Option<TcpListener>,
    _unix: [io::Result<UnixListener>; 2],
    _locked: File,
    _folder: TempDir,
}

impl TestbedGuard {
    pub(super) fn new(scratch: &Path) -> io::Result<Self> {
        let (folder, locked) = make(scratch)?;
        // Where we are fenced in ourselves and may not listen, neither may what we start.
        let tcp = TcpListener::bind("127.0.0.1:0").ok();
        let port = tcp.as_ref().and_then(|it| it.local_addr().ok());
        let host = std::process::id();
        let stage = Testbed {
            folder: fs::canonicalize(folder.path())?,
            tcp: port.map_or(0, |it| it.port()),
            host,
            host_began: attempt::began(host)?,
        };
        fs::create_dir(stage.outside())?;
        fs::write(stage.outside().join("canary"), "")?;
        fs::create_dir_all(stage.workspace().join(".git/hooks"))?;
        let unnamed = SocketAddr::from_abstract_name(stage.abstract_socket())?;
        let unix = [
            UnixListener::bind(stage.socket()),
            UnixListener::bind_addr(&unnamed),
        ];
        Ok(Self {
            testbed: stage,
            _tcp: tcp,
            _unix: unix,
            _locked: locked,
            _folder: folder,
        })
    }
}

/// Makes a folder and locks it. Between the two someone may take it for one that was left, and remove it.
fn make(scratch: &Path) -> io::Result<(TempDir, File)> {
    for _ in 0..TRIES {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(scratch)?;
        if let Ok(locked) = open(folder.path())
            && is_alone(&locked)
            && folder.path().exists()
        {
            return Ok((folder, locked));
        }
    }
    Err(io::Error::other("someone removes it again and again"))
}

/// Removes the stages of those who were killed. What is locked is in use, and what belongs to another user is
/// not ours to remove.
pub(super) fn remove_stale(scratch: &Path) {
    let Ok(entries) = fs::read_dir(scratch) else {
        return;
    };
    for entry in entries.flatten() {
        let is_stage = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if !is_stage {
            continue;
        }
        let Ok(folder) = open(&entry.path()) else {
            continue;
        };
        let us = rustix::process::geteuid().as_raw();
        let is_ours = folder.metadata().is_ok_and(|it| it.uid() == us);
        // The lock is held until it is gone.
        if is_ours && is_alone(&folder) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_alone(folder: &File) -> bool {
    flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

fn open(folder: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scratch: &Path) -> Vec<String> {
        let entries = fs::read_dir(scratch).expect("it is there").flatten();
        let mut names: Vec<String> = entries
            .filter_map(|it| it.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_the_dead_left_goes_and_what_is_in_use_stays() {
        let scratch = tempfile::tempdir().expect("a folder");
        let left = scratch.path().join("raddle-self-test-left");
        fs::create_dir_all(left.join("workspace/.git")).expect("it is made");
        let linked = scratch.path().join("linked");
        fs::create_dir_all(linked.join("kept")).expect("it is made");
        let link = scratch.path().join("raddle-self-test-link");
        std::os::unix::fs::symlink(&linked, link).expect("it is made");
        let set = TestbedGuard::new(scratch.path()).expect("a stage");
        let mode = fs::metadata(&set.testbed.folder)
            .expect("it is there")
            .mode();
        assert_eq!(mode & 0o7777, 0o700);

        remove_stale(scratch.path());
        let used = set.testbed.folder.file_name().and_then(|it| it.to_str());
        let mut expected = ["linked", "raddle-self-test-link", used.expect("a name")];
        expected.sort();
        assert_eq!(names(scratch.path()), expected);
        assert!(linked.join("kept").exists());
        drop(set);
        assert_eq!(names(scratch.path()), ["linked", "raddle-self-test-link"]);
    }
}
