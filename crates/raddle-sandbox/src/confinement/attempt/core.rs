//! The few attempts with which a sandbox tests itself: one for each kind of boundary. None does
//! harm if it succeeds.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixStream};

use rustix::process::{Pid, test_kill_process};

use super::SecondTier::{Open, Stopped, StoppedFrom};
use super::{Attempt, Testbed};
use crate::confinement::syscalls;

/// The attempts, in the order in which they are made.
pub const CORE: &[Attempt] = &[
    Attempt {
        name: "write-outside",
        shows: "files outside the writable folders cannot be written",
        second_tier: Stopped,
        run: |testbed| fs::write(testbed.outside().join("new"), "x"),
    },
    Attempt {
        name: "write-through-link",
        shows: "a link does not lead a write outside",
        second_tier: Stopped,
        run: |testbed| {
            let link = testbed.workspace().join("link");
            symlink(testbed.outside().join("canary"), &link)?;
            fs::write(link, "x")
        },
    },
    Attempt {
        name: "chmod-outside",
        shows: "modes, owners and times of files outside cannot be changed",
        second_tier: Open,
        run: |testbed| {
            let canary = testbed.outside().join("canary");
            fs::set_permissions(canary, Permissions::from_mode(0o666))
        },
    },
    Attempt {
        name: "read-unlisted",
        shows: "what is not listed cannot be read, where reading is by list",
        second_tier: Stopped,
        run: |testbed| fs::read(testbed.outside().join("canary")).map(drop),
    },
    Attempt {
        name: "git-hook",
        shows: "no code can be left in .git for the host to run",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join(".git/hooks/post-checkout"), "x"),
    },
    Attempt {
        name: "make-protected",
        shows: "a protected name that is missing cannot be made",
        second_tier: Open,
        run: |testbed| {
            let folder = testbed.workspace().join(".codex");
            // The folder may exist as a placeholder; what counts is whether a file can be created
            // in it.
            let _ = fs::create_dir(&folder);
            fs::write(folder.join("config.toml"), "x")
        },
    },
    Attempt {
        name: "setuid-file",
        shows: "no file can be made that runs as its owner for others",
        second_tier: Stopped,
        run: |testbed| {
            let file = testbed.workspace().join("setuid");
            fs::write(&file, "x")?;
            fs::set_permissions(file, Permissions::from_mode(0o4755))
        },
    },
    Attempt {
        name: "tcp-to-host",
        shows: "without network, no service of the host is reached over TCP",
        second_tier: Stopped,
        run: |testbed| TcpStream::connect(("127.0.0.1", testbed.tcp)).map(drop),
    },
    Attempt {
        name: "unix-to-host",
        shows: "unix sockets of the host are out of reach: agents, containers, the desktop",
        second_tier: Stopped,
        run: |testbed| UnixStream::connect(testbed.socket()).map(drop),
    },
    Attempt {
        name: "abstract-to-host",
        shows: "so are those that have no path",
        second_tier: Stopped,
        run: |testbed| {
            let address = SocketAddr::from_abstract_name(testbed.abstract_socket())?;
            UnixStream::connect_addr(&address).map(drop)
        },
    },
    Attempt {
        name: "vsock",
        shows: "the machine around a virtual machine is out of reach",
        second_tier: Stopped,
        run: |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
    },
    Attempt {
        name: "host-environment",
        shows: "the server's environment, where keys are, cannot be read",
        second_tier: Stopped,
        run: |testbed| {
            testbed.see_host()?;
            fs::read(format!("/proc/{}/environ", testbed.host)).map(drop)
        },
    },
    Attempt {
        name: "host-memory",
        shows: "the server's memory cannot be read",
        second_tier: Stopped,
        run: read_memory,
    },
    Attempt {
        name: "signal-host",
        shows: "the server cannot be signalled",
        second_tier: StoppedFrom(6),
        run: |testbed| {
            testbed.see_host()?;
            let host = i32::try_from(testbed.host).ok().and_then(Pid::from_raw);
            let host = host.ok_or(io::ErrorKind::InvalidInput)?;
            Ok(test_kill_process(host)?)
        },
    },
    Attempt {
        name: "see-processes",
        shows: "the host's other processes are out of sight",
        second_tier: Open,
        run: |testbed| testbed.see_host(),
    },
    // It only opens the file: a write would affect the whole machine.
    Attempt {
        name: "kernel-settings",
        shows: "the kernel's settings cannot be changed, not even as root",
        second_tier: Stopped,
        run: |_| {
            let file = "/proc/sys/kernel/core_pattern";
            OpenOptions::new().write(true).open(file).map(drop)
        },
    },
    Attempt {
        name: "io-uring",
        shows: "no second way past the filter of system calls",
        second_tier: Stopped,
        run: |_| {
            let mut params = [0_u8; 256];
            probe_syscall(
                libc::SYS_io_uring_setup,
                [1, params.as_mut_ptr() as usize, 0, 0, 0, 0],
            )
        },
    },
    Attempt {
        name: "keyrings",
        shows: "keys that the kernel holds are out of reach",
        second_tier: Stopped,
        run: |_| probe_syscall(libc::SYS_keyctl, [usize::MAX, 0, 0, 0, 0, 0]),
    },
    Attempt {
        name: "bpf",
        shows: "no program can be loaded into the kernel",
        second_tier: Stopped,
        run: |_| probe_syscall(libc::SYS_bpf, [usize::MAX, 0, 0, 0, 0, 0]),
    },
    // The last one, because it would change this process.
    Attempt {
        name: "user-namespace",
        shows: "no namespaces of its own, and so none of the kernel that only root should reach",
        second_tier: Stopped,
        run: |_| {
            probe_syscall(
                libc::SYS_unshare,
                [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0],
            )
        },
    },
];

/// Makes a system call with harmless arguments. Any result but a refusal means that the filter let
/// the call through.
fn probe_syscall(call: libc::c_long, words: [usize; 6]) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a raw system call")]
    // SAFETY: the only pointer that is passed here is that of `io_uring_setup`, to a buffer that is
    // larger than what the call writes; the other calls are made with invalid arguments that they
    // reject.
    let answer = unsafe { syscalls::call(call, words) };
    match answer {
        Err(error) if is_refusal(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a raw system call")]
    // SAFETY: the call takes three numbers.
    unsafe {
        syscalls::call(
            libc::SYS_socket,
            [family as usize, kind as usize, protocol as usize, 0, 0, 0],
        )
    }
    .map(drop)
}

/// Reads a byte at an unmapped address: a process that may read the memory gets `EFAULT`.
fn read_memory(testbed: &Testbed) -> io::Result<()> {
    testbed.see_host()?;
    let mut byte = 0_u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 1,
    };
    let words = [
        testbed.host as usize,
        (&raw const local) as usize,
        1,
        (&raw const remote) as usize,
        1,
        0,
    ];
    #[expect(unsafe_code, reason = "a raw system call")]
    // SAFETY: both vectors live through the call, and the local one points to a byte that may be
    // written.
    let answer = unsafe { syscalls::call(libc::SYS_process_vm_readv, words) };
    match answer {
        Err(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(error),
        _ => Ok(()),
    }
}
