//! The testbed on which a sandbox tries to break out of itself: a separate folder, and a host that
//! listens.
//!
//! A killed process leaves its folder behind, so the next measurement removes it. The folder is
//! locked while it is in use, and the kernel releases the lock when its process dies.

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

/// Prefix of the names of these folders.
const PREFIX: &str = "raddle-self-test-";

/// Attempts to create a folder that another process removes at the same moment.
const CREATE_TRIES_MAX: usize = 100;

/// A testbed that is in use; dropping it removes its folder.
pub(super) struct TestbedGuard {
    pub(super) testbed: Testbed,
    _tcp: Option<TcpListener>,
    _unix: [io::Result<UnixListener>; 2],
    _lock: File,
    _folder: TempDir,
}

impl TestbedGuard {
    pub(super) fn new(scratch: &Path) -> io::Result<Self> {
        let (folder, lock) = make(scratch)?;
        // Where the server itself is sandboxed and may not listen, its commands may not either.
        let tcp = TcpListener::bind("127.0.0.1:0").ok();
        let port = tcp.as_ref().and_then(|it| it.local_addr().ok());
        let host = std::process::id();
        let testbed = Testbed {
            folder: fs::canonicalize(folder.path())?,
            tcp: port.map_or(0, |it| it.port()),
            host,
            host_began: attempt::began(host)?,
        };
        fs::create_dir(testbed.outside())?;
        fs::write(testbed.outside().join("canary"), "")?;
        fs::create_dir_all(testbed.workspace().join(".git/hooks"))?;
        let abstract_address = SocketAddr::from_abstract_name(testbed.abstract_socket())?;
        let unix = [
            UnixListener::bind(testbed.socket()),
            UnixListener::bind_addr(&abstract_address),
        ];
        Ok(Self {
            testbed,
            _tcp: tcp,
            _unix: unix,
            _lock: lock,
            _folder: folder,
        })
    }
}

/// Creates a folder and locks it. Between the two, another process may mistake it for a stale one
/// and remove it.
fn make(scratch: &Path) -> io::Result<(TempDir, File)> {
    for _ in 0..CREATE_TRIES_MAX {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(scratch)?;
        if let Ok(lock) = open(folder.path())
            && try_lock(&lock)
            && folder.path().exists()
        {
            return Ok((folder, lock));
        }
    }
    Err(io::Error::other("another process removes it repeatedly"))
}

/// Removes the testbeds of killed processes. A locked one is in use, and one of another user is not
/// ours to remove.
pub(super) fn remove_stale(scratch: &Path) {
    let Ok(entries) = fs::read_dir(scratch) else {
        return;
    };
    for entry in entries.flatten() {
        let is_testbed = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if !is_testbed {
            continue;
        }
        let Ok(folder) = open(&entry.path()) else {
            continue;
        };
        let us = rustix::process::geteuid().as_raw();
        let is_ours = folder.metadata().is_ok_and(|it| it.uid() == us);
        // The lock is held until the folder is removed.
        if is_ours && try_lock(&folder) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn try_lock(folder: &File) -> bool {
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
    fn stale_testbeds_are_removed_and_used_ones_stay() {
        let scratch = tempfile::tempdir().expect("a folder");
        let stale = scratch.path().join("raddle-self-test-left");
        fs::create_dir_all(stale.join("workspace/.git")).expect("it is made");
        let linked = scratch.path().join("linked");
        fs::create_dir_all(linked.join("kept")).expect("it is made");
        let link = scratch.path().join("raddle-self-test-link");
        std::os::unix::fs::symlink(&linked, link).expect("it is made");
        let guard = TestbedGuard::new(scratch.path()).expect("a testbed");
        let mode = fs::metadata(&guard.testbed.folder)
            .expect("it is there")
            .mode();
        assert_eq!(mode & 0o7777, 0o700);

        remove_stale(scratch.path());
        let used = guard.testbed.folder.file_name().and_then(|it| it.to_str());
        let mut expected = ["linked", "raddle-self-test-link", used.expect("a name")];
        expected.sort();
        assert_eq!(names(scratch.path()), expected);
        assert!(linked.join("kept").exists());
        drop(guard);
        assert_eq!(names(scratch.path()), ["linked", "raddle-self-test-link"]);
    }
}
