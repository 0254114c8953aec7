//! Other processes of the same user.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use raddle_sandbox::attempt::SecondTier::{Open, Stopped};
use raddle_sandbox::attempt::{Attempt, Testbed};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};

use crate::host::{CANARY, queue_key, queue_name};
use crate::syscalls::{self, Fork};

const PTRACE_SEIZE: usize = 0x4206;

fn of_host(testbed: &Testbed, entry: &str) -> io::Result<PathBuf> {
    testbed.see_host()?;
    Ok(format!("/proc/{}/{entry}", testbed.host).into())
}

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "ptrace-host",
        shows: "the server cannot be traced",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            syscalls::call(
                libc::SYS_ptrace,
                &[PTRACE_SEIZE, testbed.host as usize, 0, 0],
            )
            .map(drop)
        },
    },
    Attempt {
        name: "write-host-memory",
        shows: "its memory cannot be written",
        second_tier: Stopped,
        run: |testbed| {
            let file = of_host(testbed, "mem")?;
            OpenOptions::new().write(true).open(file).map(drop)
        },
    },
    Attempt {
        name: "host-root",
        shows: "its view of the disk is not a way out",
        second_tier: Stopped,
        run: |testbed| {
            let mut path = of_host(testbed, "root")?;
            path.extend(testbed.outside().join("canary").components().skip(1));
            fs::write(path, "x")
        },
    },
    Attempt {
        name: "host-folder",
        shows: "nor is the folder it is in",
        second_tier: Stopped,
        run: |testbed| fs::read_link(of_host(testbed, "cwd")?).map(drop),
    },
    Attempt {
        name: "host-descriptors",
        shows: "what it has open is its own",
        second_tier: Stopped,
        run: |testbed| fs::read_link(of_host(testbed, "fd/0")?).map(drop),
    },
    Attempt {
        name: "steal-descriptor",
        shows: "and cannot be taken from it",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            let process = syscalls::call(libc::SYS_pidfd_open, &[testbed.host as usize, 0])?;
            syscalls::call(libc::SYS_pidfd_getfd, &[process as usize, 0, 0]).map(drop)
        },
    },
    Attempt {
        name: "any-environment",
        shows: "no process in sight has the server's secrets in its environment",
        second_tier: Stopped,
        run: |_| {
            for entry in fs::read_dir("/proc")?.flatten() {
                let mut bytes = Vec::new();
                let file = fs::File::open(entry.path().join("environ"));
                let _ = file.and_then(|mut it| it.read_to_end(&mut bytes));
                if bytes
                    .windows(CANARY.len())
                    .any(|it| it == CANARY.as_bytes())
                {
                    return Ok(());
                }
            }
            Err(io::Error::other("found nowhere"))
        },
    },
    Attempt {
        name: "own-environment",
        shows: "nor was it handed to the command",
        second_tier: Stopped,
        run: |_| {
            let is_found = std::env::vars().any(|(_, value)| value.contains(CANARY));
            if is_found {
                Ok(())
            } else {
                Err(io::Error::other("not there"))
            }
        },
    },
    Attempt {
        name: "choose-host-to-die",
        shows: "the kernel cannot be told to end the server first",
        second_tier: Stopped,
        run: |testbed| {
            let file = of_host(testbed, "oom_score_adj")?;
            OpenOptions::new()
                .write(true)
                .open(file)?
                .write_all(b"1000")
        },
    },
    Attempt {
        name: "renice-host",
        shows: "the server cannot be slowed down",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            let (which, host) = (libc::PRIO_PROCESS as usize, testbed.host as usize);
            // The kernel counts down from 20, so that no result is negative. The new value equals
            // the old one.
            let now = 20 - syscalls::call(libc::SYS_getpriority, &[which, host])?;
            syscalls::call(libc::SYS_setpriority, &[which, host, now as usize]).map(drop)
        },
    },
    // To the default priority, which changes nothing unless a process has another one.
    Attempt {
        name: "renice-user",
        shows: "nor all that belongs to the same user",
        second_tier: Stopped,
        run: |testbed| {
            let user = libc::PRIO_USER as usize;
            syscalls::probe(libc::SYS_setpriority, &[user, 0, 0])?;
            testbed.see_host()
        },
    },
    Attempt {
        name: "disk-priority-of-host",
        shows: "nor be made to wait for the disk",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            let (process, host) = (1, testbed.host as usize);
            let now = syscalls::call(libc::SYS_ioprio_get, &[process, host])?;
            syscalls::call(libc::SYS_ioprio_set, &[process, host, now as usize]).map(drop)
        },
    },
    Attempt {
        name: "processors-of-host",
        shows: "nor be kept from using all processors",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            let (mut mask, host) = ([0_u64; 128], testbed.host as usize);
            let at = (&raw mut mask) as usize;
            let length =
                syscalls::call(libc::SYS_sched_getaffinity, &[host, size_of_val(&mask), at])?;
            syscalls::call(libc::SYS_sched_setaffinity, &[host, length as usize, at]).map(drop)
        },
    },
    Attempt {
        name: "limit-host",
        shows: "its limits cannot be changed",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            let mut now = libc::rlimit64 {
                rlim_cur: 0,
                rlim_max: 0,
            };
            let (host, core) = (testbed.host as usize, libc::RLIMIT_CORE as usize);
            syscalls::call(
                libc::SYS_prlimit64,
                &[host, core, 0, (&raw mut now) as usize],
            )?;
            syscalls::call(
                libc::SYS_prlimit64,
                &[host, core, (&raw const now) as usize, 0],
            )
            .map(drop)
        },
    },
    Attempt {
        name: "message-queue",
        shows: "queues and shared memory of the host's programs are out of reach",
        second_tier: Stopped,
        run: |testbed| syscalls::call(libc::SYS_msgget, &[queue_key(testbed), 0]).map(drop),
    },
    Attempt {
        name: "named-queue",
        shows: "so are queues with names",
        second_tier: Stopped,
        run: |testbed| {
            let name = queue_name(testbed);
            let words = [syscalls::at(&name), libc::O_RDWR as usize, 0, 0];
            syscalls::call(libc::SYS_mq_open, &words).map(drop)
        },
    },
    // The host checks whether it is alive.
    Attempt {
        name: "daemon",
        shows: "nothing that a command started outlives it",
        second_tier: Open,
        run: daemon,
    },
];

/// Leaves a daemon behind that listens on a named pipe.
fn daemon(testbed: &Testbed) -> io::Result<()> {
    let path = testbed.workspace().join("daemon");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
    let (ready, notify) = rustix::pipe::pipe()?;
    // SAFETY: this program starts no threads.
    if let Fork::Child = unsafe { syscalls::fork() }? {
        let _ = rustix::process::setsid();
        // SAFETY: as above.
        if let Ok(Fork::Child) = unsafe { syscalls::fork() } {
            let listen = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
            if let Ok(listen) = listen {
                let _ = rustix::io::write(&notify, b"x");
                let _ = poll(&mut [PollFd::new(&listen, PollFlags::IN)], None);
            }
        }
        syscalls::exit_now();
    }
    drop(notify);
    rustix::io::read(&ready, &mut [0; 1])?;
    Err(io::Error::other(
        "left behind; the host checks whether it lives",
    ))
}
