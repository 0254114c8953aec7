//! Files that a command may not write, or not read.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

use raddle_sandbox::attempt::SecondTier::{Open, Stopped};
use raddle_sandbox::attempt::{Attempt, Testbed};

use crate::syscalls;

fn canary(testbed: &Testbed) -> PathBuf {
    testbed.outside().join("canary")
}

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "truncate-outside",
        shows: "a file outside cannot be cut by its path",
        second_tier: Stopped,
        run: |testbed| {
            let path = syscalls::path(&canary(testbed))?;
            syscalls::call(libc::SYS_truncate, &[syscalls::at(&path), 0]).map(drop)
        },
    },
    Attempt {
        name: "append-outside",
        shows: "nothing can be added to a file outside",
        second_tier: Stopped,
        run: |testbed| {
            OpenOptions::new()
                .append(true)
                .open(canary(testbed))
                .map(drop)
        },
    },
    Attempt {
        name: "unlink-outside",
        shows: "a file outside cannot be removed",
        second_tier: Stopped,
        run: |testbed| fs::remove_file(canary(testbed)),
    },
    Attempt {
        name: "mkdir-outside",
        shows: "no folder can be made outside",
        second_tier: Stopped,
        run: |testbed| fs::create_dir(testbed.outside().join("folder")),
    },
    Attempt {
        name: "rename-outwards",
        shows: "a file cannot be moved outside",
        second_tier: Stopped,
        run: |testbed| {
            let file = testbed.workspace().join("file");
            fs::write(&file, "x")?;
            fs::rename(file, canary(testbed))
        },
    },
    Attempt {
        name: "rename-inwards",
        shows: "a file cannot be moved away from outside",
        second_tier: Stopped,
        run: |testbed| fs::rename(canary(testbed), testbed.workspace().join("taken")),
    },
    Attempt {
        name: "rename-workspace",
        shows: "the workspace cannot be put somewhere else, and another in its place",
        second_tier: Stopped,
        run: |testbed| fs::rename(testbed.workspace(), testbed.folder.join("elsewhere")),
    },
    Attempt {
        name: "hardlink-inwards",
        shows: "a file outside does not become writable by a second name",
        second_tier: Stopped,
        run: |testbed| {
            let name = testbed.workspace().join("second-name");
            fs::hard_link(canary(testbed), &name)?;
            fs::write(name, "x")
        },
    },
    Attempt {
        name: "hardlink-readable-inwards",
        shows: "nor does a file that may be read",
        second_tier: Stopped,
        run: |testbed| {
            let name = testbed.workspace().join("second-name");
            fs::hard_link(testbed.folder.join("readable/file"), &name)?;
            fs::write(name, "x")
        },
    },
    Attempt {
        name: "reopen-path-descriptor",
        shows: "a descriptor that only names a file cannot be opened again for writing",
        second_tier: Stopped,
        run: |testbed| {
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(testbed.folder.join("readable/file"))?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&file);
            fs::write(format!("/proc/self/fd/{number}"), "x")
        },
    },
    Attempt {
        name: "write-by-dots",
        shows: "`..` does not lead outside",
        second_tier: Stopped,
        run: |_| fs::write("../outside/canary", "x"),
    },
    Attempt {
        name: "write-by-own-root",
        shows: "nor does the way through /proc/self/root",
        second_tier: Stopped,
        run: |testbed| {
            let mut path = PathBuf::from("/proc/self/root/..");
            path.extend(canary(testbed).components().skip(1));
            fs::write(path, "x")
        },
    },
    Attempt {
        name: "write-readable",
        shows: "what may be read may not be written",
        second_tier: Stopped,
        run: |testbed| fs::write(testbed.folder.join("readable/file"), "x"),
    },
    Attempt {
        name: "write-system",
        shows: "the system's own folders are not the command's to write",
        second_tier: Stopped,
        run: |testbed| fs::write(format!("/etc/sandbox-escapes-{}", testbed.tcp), "x"),
    },
    Attempt {
        name: "read-hidden",
        shows: "what is hidden inside a readable folder cannot be read",
        second_tier: Open,
        run: |testbed| fs::read(testbed.folder.join("readable/hidden/secret")).map(drop),
    },
    Attempt {
        name: "read-hidden-file",
        shows: "nor can a hidden file",
        second_tier: Open,
        run: |testbed| fs::read(testbed.folder.join("readable/hidden-file")).map(drop),
    },
    Attempt {
        name: "list-outside",
        shows: "folders that are not listed cannot be looked into",
        second_tier: Stopped,
        run: |testbed| fs::read_dir(testbed.outside()).map(drop),
    },
    Attempt {
        name: "touch-outside",
        shows: "times of files outside cannot be changed",
        second_tier: Open,
        run: |testbed| {
            let path = syscalls::path(&canary(testbed))?;
            syscalls::call(
                libc::SYS_utimensat,
                &[libc::AT_FDCWD as usize, syscalls::at(&path), 0, 0],
            )
            .map(drop)
        },
    },
    Attempt {
        name: "touch-readable",
        shows: "nor those of files that may be read",
        second_tier: Open,
        run: |testbed| {
            let file = File::open(testbed.folder.join("readable/file"))?;
            file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))
        },
    },
    Attempt {
        name: "xattr-outside",
        shows: "attributes of files outside cannot be changed",
        second_tier: Open,
        run: |testbed| {
            let (path, name) = (syscalls::path(&canary(testbed))?, c"user.raddle".to_owned());
            let words = [
                syscalls::at(&path),
                syscalls::at(&name),
                syscalls::at(&name),
                1,
                0,
            ];
            syscalls::call(libc::SYS_setxattr, &words).map(drop)
        },
    },
    Attempt {
        name: "leaked-folder",
        shows: "a folder that someone left open is closed",
        second_tier: Stopped,
        run: |_| {
            let mut last = io::Error::other("no descriptor was left open");
            for number in 3..64 {
                match fs::write(format!("/proc/self/fd/{number}/leaked"), "x") {
                    Ok(()) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => last = error,
                }
            }
            Err(last)
        },
    },
    // The host checks whether these reached its own files.
    Attempt {
        name: "write-tmp",
        shows: "the host's /tmp is not the command's",
        second_tier: Stopped,
        run: |testbed| write_mark(&format!("/tmp/sandbox-escapes-{}", testbed.tcp)),
    },
    Attempt {
        name: "write-shared-memory",
        shows: "nor is its shared memory",
        second_tier: Stopped,
        run: |testbed| write_mark(&format!("/dev/shm/sandbox-escapes-{}", testbed.tcp)),
    },
];

fn write_mark(file: &str) -> io::Result<()> {
    fs::write(file, "x")?;
    Err(io::Error::other(
        "written; the host checks whether it sees it",
    ))
}
