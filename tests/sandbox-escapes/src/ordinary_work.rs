//! Ordinary work, which must succeed inside the sandbox: a sandbox that stops everything is easily
//! built.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use raddle_sandbox::attempt::Testbed;
use rustix::process::Signal;

use crate::host::PROCESSES_MAX;
use crate::syscalls;

/// An operation of a build or a test.
pub struct OrdinaryWork {
    pub name: &'static str,
    /// Whether the second tier allows it.
    pub second_tier: bool,
    pub run: fn(&Testbed) -> io::Result<()>,
}

/// A fork bomb ends at the limit: the only work here that must fail, and does so by itself.
pub const FORK_BOMB: &str = "storm-ends";

pub const ORDINARY: &[OrdinaryWork] = &[
    OrdinaryWork {
        name: "files",
        second_tier: true,
        run: |testbed| {
            let folder = testbed.workspace().join("target/deep");
            fs::create_dir_all(&folder)?;
            let (one, two) = (folder.join("one"), testbed.workspace().join("two"));
            fs::write(&one, "x")?;
            fs::rename(&one, &two)?;
            fs::hard_link(&two, &one)?;
            symlink(&two, folder.join("link"))?;
            fs::set_permissions(&two, Permissions::from_mode(0o755))?;
            OpenOptions::new()
                .append(true)
                .open(&two)?
                .write_all(b"y")?;
            fs::remove_dir_all(folder)
        },
    },
    OrdinaryWork {
        name: "read-the-repository",
        second_tier: true,
        run: |testbed| fs::read(testbed.workspace().join(".git/config")).map(drop),
    },
    OrdinaryWork {
        name: "read-what-is-listed",
        second_tier: true,
        run: |testbed| fs::read(testbed.folder.join("readable/file")).map(drop),
    },
    OrdinaryWork {
        name: "start-programs",
        second_tier: true,
        run: |_| {
            let output = Command::new("/bin/sh")
                .args([
                    "-c",
                    "echo x | cat > /dev/null && test -r /etc/passwd && echo done > /dev/stdout",
                ])
                .output()?;
            expect(
                output.stdout == b"done\n",
                &String::from_utf8_lossy(&output.stderr),
            )
        },
    },
    OrdinaryWork {
        name: "end-programs",
        second_tier: true,
        run: |_| {
            let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn()?;
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, Signal::TERM)?;
            expect(!child.wait()?.success(), "it was not ended")
        },
    },
    OrdinaryWork {
        name: "threads-and-pairs",
        second_tier: true,
        run: |_| {
            let (mut here, mut there) = UnixStream::pair()?;
            let other = std::thread::spawn(move || there.write_all(b"x"));
            here.read_exact(&mut [0])?;
            other.join().map_err(|_| io::Error::other("it panicked"))?
        },
    },
    OrdinaryWork {
        name: "devices",
        second_tier: true,
        run: |_| {
            File::open("/dev/urandom")?.read_exact(&mut [0; 16])?;
            fs::write("/dev/null", "x")
        },
    },
    OrdinaryWork {
        name: "own-limits",
        second_tier: true,
        run: |_| {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            Ok(rustix::process::setrlimit(
                rustix::process::Resource::Nofile,
                limit,
            )?)
        },
    },
    OrdinaryWork {
        name: "own-session",
        second_tier: true,
        run: |_| {
            // SAFETY: this thread is the only one.
            if let syscalls::Fork::Child = unsafe { syscalls::fork() }? {
                let _ = rustix::process::setsid();
                syscalls::exit_now();
            }
            Ok(())
        },
    },
    OrdinaryWork {
        name: FORK_BOMB,
        second_tier: false,
        run: |_| {
            let (wait, _writer) = rustix::pipe::pipe()?;
            for _ in 0..PROCESSES_MAX * 2 {
                // SAFETY: this thread is the only one.
                match unsafe { syscalls::fork() } {
                    Ok(syscalls::Fork::Parent) => {}
                    Ok(syscalls::Fork::Child) => {
                        let _ = rustix::io::read(&wait, &mut [0; 1]);
                        syscalls::exit_now();
                    }
                    Err(_) => return Ok(()),
                }
            }
            Err(io::Error::other("it does not end"))
        },
    },
    OrdinaryWork {
        name: "own-tmp",
        second_tier: false,
        run: |_| fs::write("/tmp/own", "x"),
    },
    OrdinaryWork {
        name: "shared-memory",
        second_tier: false,
        run: |_| fs::write("/dev/shm/own", "x"),
    },
    OrdinaryWork {
        name: "own-network",
        second_tier: false,
        run: |_| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let _client = TcpStream::connect(listener.local_addr()?)?;
            listener.accept().map(drop)
        },
    },
    OrdinaryWork {
        name: "list-of-addresses",
        second_tier: false,
        run: |_| syscalls::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE).map(drop),
    },
];

fn expect(condition: bool, message: &str) -> io::Result<()> {
    if condition {
        Ok(())
    } else {
        Err(io::Error::other(message.to_owned()))
    }
}
