//! Files that a command may not write, or not read.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

use raddle_sandbox::attempt::SecondTier::{Open, Stopped};
use raddle_sandbox::attempt::{Attempt, Testbed};

use crate::syscalls;

fn canary(stage: &Testbed) -> PathBuf {
    stage.outside().join("canary")
}

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "truncate-outside",
        shows: "a file outside cannot be cut by its path",
        second_tier: Stopped,
        run: |stage| {
            let path = syscalls::path(&canary(stage))?;
            syscalls::call(libc::SYS_truncate, &[syscalls::at(&path), 0]).map(drop)
        },
    },
    Attempt {
        name: "append-outside",
        shows: "nothing can be added to a file outside",
        second_tier: Stopped,
        run: |stage| {
            OpenOptions::new()
                .append(true)
                .open(canary(stage))
                .map(drop)
        },
    },
    Attempt {
        name: "unlink-outside",
        shows: "a file outside cannot be removed",
        second_tier: Stopped,
        run: |stage| fs::remove_file(canary(stage)),
    },
    Attempt {
        name: "mkdir-outside",
        shows: "no folder can be made outside",
        second_tier: Stopped,
        run: |stage| fs::create_dir(stage.outside().join("folder")),
    },
    Attempt {
        name: "rename-outwards",
        shows: "a file cannot be moved outside",
        second_tier: Stopped,
        run: |stage| {
            let file = stage.workspace().join("file");
            fs::write(&file, "x")?;
            fs::rename(file, canary(stage))
        },
    },
    Attempt {
        name: "rename-inwards",
        shows: "a file cannot be moved away from outside",
        second_tier: Stopped,
        run: |stage| fs::rename(canary(stage), stage.workspace().join("taken")),
    },
    Attempt {
        name: "rename-workspace",
        shows: "the workspace cannot be put somewhere else, and another in its place",
        second_tier: Stopped,
        run: |stage| fs::rename(stage.workspace(), stage.folder.join("elsewhere")),
    },
    Attempt {
        name: "hardlink-inwards",
        shows: "a file outside does not become writable by a second name",
        second_tier: Stopped,
        run: |stage| {
            let name = stage.workspace().join("second-name");
            fs::hard_link(canary(stage), &name)?;
            fs::write(name, "x")
        },
    },
    Attempt {
        name: "hardlink-readable-inwards",
        shows: "nor does a file that may be read",
        second_tier: Stopped,
        run: |stage| {
            let name = stage.workspace().join("second-name");
            fs::hard_link(stage.folder.join("readable/file"), &name)?;
            fs::write(name, "x")
        },
    },
    Attempt {
        name: "reopen-path-descriptor",
        shows: "a descriptor that only names a file cannot be opened again for writing",
        second_tier: Stopped,
        run: |stage| {
            let named = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(stage.folder.join("readable/file"))?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&named);
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
        run: |stage| {
            let mut path = PathBuf::from("/proc/self/root/..");
            path.extend(canary(stage).components().skip(1));
            fs::write(path, "x")
        },
    },
    Attempt {
        name: "write-readable",
        shows: "what may be read may not be written",
        second_tier: Stopped,
        run: |stage| fs::write(stage.folder.join("readable/file"), "x"),
    },
    Attempt {
        name: "write-system",
        shows: "the system's own folders are not the command's to write",
        second_tier: Stopped,
        run: |stage| fs::write(format!("/etc/sandbox-escapes-{}", stage.tcp), "x"),
    },
    Attempt {
        name: "read-hidden",
        shows: "what is hidden inside a readable folder cannot be read",
        second_tier: Open,
        run: |stage| fs::read(stage.folder.join("readable/hidden/secret")).map(drop),
    },
    Attempt {
        name: "read-hidden-file",
        shows: "nor can a hidden file",
        second_tier: Open,
        run: |stage| fs::read(stage.folder.join("readable/hidden-file")).map(drop),
    },
    Attempt {
        name: "list-outside",
        shows: "folders that are not listed cannot be looked into",
        second_tier: Stopped,
        run: |stage| fs::read_dir(stage.outside()).map(drop),
    },
    Attempt {
        name: "touch-outside",
        shows: "times of files outside cannot be changed",
        second_tier: Open,
        run: |stage| {
            let path = syscalls::path(&canary(stage))?;
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
        run: |stage| {
            let file = File::open(stage.folder.join("readable/file"))?;
            file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))
        },
    },
    Attempt {
        name: "xattr-outside",
        shows: "attributes of files outside cannot be changed",
        second_tier: Open,
        run: |stage| {
            let (path, name) = (syscalls::path(&canary(stage))?, c"user.raddle".to_owned());
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
    // Of these the ground sees whether they reached the host's.
    Attempt {
        name: "write-tmp",
        shows: "the host's /tmp is not the command's",
        second_tier: Stopped,
        run: |stage| leave(&format!("/tmp/sandbox-escapes-{}", stage.tcp)),
    },
    Attempt {
        name: "write-shared-memory",
        shows: "nor is its shared memory",
        second_tier: Stopped,
        run: |stage| leave(&format!("/dev/shm/sandbox-escapes-{}", stage.tcp)),
    },
];

fn leave(file: &str) -> io::Result<()> {
    fs::write(file, "x")?;
    Err(io::Error::other(
        "written; whether the host sees it is another question",
    ))
}
