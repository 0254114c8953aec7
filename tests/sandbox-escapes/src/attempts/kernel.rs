//! Parts of the kernel that no command needs.

use std::fs::{self, OpenOptions};
use std::io;

use raddle_sandbox::attempt::SecondTier::Stopped;
use raddle_sandbox::attempt::{Attempt, Testbed};

use crate::syscalls::{self, probe};

const CLONE3: i64 = 435;
const OPENAT2: i64 = 437;
const FSOPEN: i64 = 430;
const OPEN_TREE: i64 = 428;
const MOUNT_SETATTR: i64 = 442;
const FCHMODAT2: i64 = 452;

const NOBODY: usize = usize::MAX;

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "user-namespace-by-clone",
        shows: "no namespaces by clone either",
        second_tier: Stopped,
        run: |_| clone_away(libc::SYS_clone),
    },
    Attempt {
        name: "user-namespace-by-clone3",
        shows: "nor by clone3, whose arguments no filter sees",
        second_tier: Stopped,
        run: |_| clone_away(CLONE3),
    },
    Attempt {
        name: "mount-namespace",
        shows: "no view of the disk of its own",
        second_tier: Stopped,
        run: |_| syscalls::own_namespaces(libc::CLONE_NEWNS),
    },
    Attempt {
        name: "new-mounts",
        shows: "the newer calls for mounts are out of reach",
        second_tier: Stopped,
        run: |_| {
            syscalls::own_namespaces(libc::CLONE_NEWNS)?;
            let kind = c"tmpfs".to_owned();
            syscalls::call(FSOPEN, &[syscalls::at(&kind), 0]).map(drop)
        },
    },
    Attempt {
        name: "copy-tree",
        shows: "no copy of the tree of mounts, with what lies under them",
        second_tier: Stopped,
        run: |_| {
            let root = c"/".to_owned();
            probe(
                OPEN_TREE,
                &[libc::AT_FDCWD as usize, syscalls::at(&root), 0],
            )
        },
    },
    Attempt {
        name: "chroot",
        shows: "no other root",
        second_tier: Stopped,
        run: |_| {
            syscalls::own_namespaces(0)?;
            let root = c"/".to_owned();
            syscalls::call(libc::SYS_chroot, &[syscalls::at(&root)]).map(drop)
        },
    },
    Attempt {
        name: "enter-namespace",
        shows: "no way into namespaces of others",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_setns, &[NOBODY, 0]),
    },
    Attempt {
        name: "perf-events",
        shows: "the counters of the processor are out of reach",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_perf_event_open, &[0, 0, NOBODY, NOBODY, 0]),
    },
    Attempt {
        name: "userfaultfd",
        shows: "page faults are the kernel's own",
        second_tier: Stopped,
        // The flag asks only for what every user may have.
        run: |_| probe(libc::SYS_userfaultfd, &[1]),
    },
    Attempt {
        name: "add-key",
        shows: "no keys can be left with the kernel",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_add_key, &[0, 0, 0, 0, 0]),
    },
    Attempt {
        name: "request-key",
        shows: "nor can it be asked for any",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_request_key, &[0, 0, 0, 0]),
    },
    Attempt {
        name: "file-by-handle",
        shows: "no file by a number that needs no path",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_open_by_handle_at, &[NOBODY, 0, 0]),
    },
    Attempt {
        name: "compare-processes",
        shows: "nothing is told of the kernel's addresses",
        second_tier: Stopped,
        run: |_| {
            let own = std::process::id() as usize;
            probe(libc::SYS_kcmp, &[own, own, 0, 0, 0])
        },
    },
    Attempt {
        name: "kernel-log",
        shows: "the kernel's log is out of sight",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_syslog, &[10, 0, 0]),
    },
    Attempt {
        name: "watch-everything",
        shows: "files cannot be watched by whole disks",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_fanotify_init, &[0x0000_0200, 0]),
    },
    Attempt {
        name: "call-of-another-machine",
        shows: "calls of a 32-bit program are no way around the filter",
        second_tier: Stopped,
        run: |_| old_call(),
    },
    #[cfg(target_arch = "x86_64")]
    Attempt {
        name: "segments",
        shows: "no segments of its own, for the sake of old programs",
        second_tier: Stopped,
        run: |_| probe(libc::SYS_modify_ldt, &[0, 0, 0]),
    },
    Attempt {
        name: "change-mount",
        shows: "a mount cannot be made writable by the newest call for it",
        second_tier: Stopped,
        run: |_| probe(MOUNT_SETATTR, &[NOBODY, 0, 0, 0, 0]),
    },
    // It only opens the file: a write would affect the whole machine.
    Attempt {
        name: "kernel-orders",
        shows: "the kernel cannot be given orders",
        second_tier: Stopped,
        run: |_| {
            OpenOptions::new()
                .write(true)
                .open("/proc/sysrq-trigger")
                .map(drop)
        },
    },
    Attempt {
        name: "setuid-file-at-once",
        shows: "no file is made setuid from the beginning",
        second_tier: Stopped,
        run: |testbed| {
            let path = syscalls::path(&testbed.workspace().join("file"))?;
            let flags = (libc::O_CREAT | libc::O_WRONLY) as usize;
            syscalls::call(
                libc::SYS_openat,
                &[libc::AT_FDCWD as usize, syscalls::at(&path), flags, 0o4755],
            )
            .map(drop)
        },
    },
    Attempt {
        name: "setuid-file-by-openat2",
        shows: "nor by the call that hides its arguments",
        second_tier: Stopped,
        run: |testbed| {
            let path = syscalls::path(&testbed.workspace().join("file"))?;
            let open_how = [(libc::O_CREAT | libc::O_WRONLY) as u64, 0o4755, 0];
            let words = [
                libc::AT_FDCWD as usize,
                syscalls::at(&path),
                open_how.as_ptr() as usize,
                size_of_val(&open_how),
            ];
            syscalls::call(OPENAT2, &words).map(drop)
        },
    },
    Attempt {
        name: "setuid-file-by-fchmodat2",
        shows: "nor by the newest call for modes",
        second_tier: Stopped,
        run: |testbed| change(testbed, FCHMODAT2, 0o4755),
    },
    Attempt {
        name: "setgid-file",
        shows: "no file can be made that runs as its group for others",
        second_tier: Stopped,
        run: |testbed| change(testbed, libc::SYS_fchmodat, 0o2755),
    },
    Attempt {
        name: "setuid-hidden-in-upper-half",
        shows: "the filter compares what the kernel reads, not more",
        second_tier: Stopped,
        run: |testbed| change(testbed, libc::SYS_fchmodat, 0o4755 | 1 << 40),
    },
];

fn change(testbed: &Testbed, call: i64, mode: usize) -> io::Result<()> {
    let file = testbed.workspace().join("file");
    fs::write(&file, "x")?;
    let path = syscalls::path(&file)?;
    syscalls::call(
        call,
        &[libc::AT_FDCWD as usize, syscalls::at(&path), mode, 0],
    )
    .map(drop)
}

/// Starts a child in a user namespace of its own.
fn clone_away(call: i64) -> io::Result<()> {
    // The flags, and the signal of the child's end; `clone3` reads both from memory.
    let flags = libc::CLONE_NEWUSER as u64;
    let signal = libc::SIGCHLD as u64;
    let clone_args = [flags, 0, 0, 0, signal, 0, 0, 0];
    let words = if call == CLONE3 {
        [
            clone_args.as_ptr() as usize,
            size_of_val(&clone_args),
            0,
            0,
            0,
        ]
    } else {
        [(flags | signal) as usize, 0, 0, 0, 0]
    };
    if syscalls::call(call, &words)? == 0 {
        syscalls::exit_now();
    }
    Ok(())
}

/// `getpid` as a 32-bit program calls it.
#[cfg(target_arch = "x86_64")]
fn old_call() -> io::Result<()> {
    let mut answer: i64 = 20;
    // SAFETY: the call takes nothing and returns a number. The 32-bit entry clobbers these
    // registers.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("rax") answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if answer > 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-(answer as i32)))
    }
}

/// Other architectures have 32-bit entries of their own, which this program does not try.
#[cfg(not(target_arch = "x86_64"))]
fn old_call() -> io::Result<()> {
    Err(io::Error::other("this machine has no such door"))
}
