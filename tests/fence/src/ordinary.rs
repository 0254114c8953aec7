//! Ordinary work, which must succeed inside the fence: a fence that stops everything is easily built.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use raddle_sandbox::attempt::Stage;
use rustix::process::Signal;

use crate::ground::PROCESSES_MAX;
use crate::raw;

/// Something that a build or a test does.
pub struct Work {
    pub name: &'static str,
    /// Whether the second tier lets it be done.
    pub second_tier: bool,
    pub run: fn(&Stage) -> io::Result<()>,
}

/// A storm of forks ends at the limit: the only work here that must fail, and does so by itself.
pub const STORM: &str = "storm-ends";

pub const ORDINARY: &[Work] = &[
    Work {
        name: "files",
        second_tier: true,
        run: |stage| {
            let folder = stage.workspace().join("target/deep");
            fs::create_dir_all(&folder)?;
            let (one, two) = (folder.join("one"), stage.workspace().join("two"));
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
    Work {
        name: "read-the-repository",
        second_tier: true,
        run: |stage| fs::read(stage.workspace().join(".git/config")).map(drop),
    },
    Work {
        name: "read-what-is-listed",
        second_tier: true,
        run: |stage| fs::read(stage.folder.join("readable/file")).map(drop),
    },
    Work {
        name: "start-programs",
        second_tier: true,
        run: |_| {
            let done = Command::new("/bin/sh")
                .args([
                    "-c",
                    "echo x | cat > /dev/null && test -r /etc/passwd && echo done > /dev/stdout",
                ])
                .output()?;
            expect(
                done.stdout == b"done\n",
                &String::from_utf8_lossy(&done.stderr),
            )
        },
    },
    Work {
        name: "end-programs",
        second_tier: true,
        run: |_| {
            let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn()?;
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, Signal::TERM)?;
            expect(!child.wait()?.success(), "it was not ended")
        },
    },
    Work {
        name: "threads-and-pairs",
        second_tier: true,
        run: |_| {
            let (mut here, mut there) = UnixStream::pair()?;
            let other = std::thread::spawn(move || there.write_all(b"x"));
            here.read_exact(&mut [0])?;
            other.join().map_err(|_| io::Error::other("it panicked"))?
        },
    },
    Work {
        name: "devices",
        second_tier: true,
        run: |_| {
            File::open("/dev/urandom")?.read_exact(&mut [0; 16])?;
            fs::write("/dev/null", "x")
        },
    },
    Work {
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
    Work {
        name: "own-session",
        second_tier: true,
        run: |_| {
            // SAFETY: this thread is the only one.
            if let raw::Fork::Child = unsafe { raw::fork() }? {
                let _ = rustix::process::setsid();
                raw::exit_now();
            }
            Ok(())
        },
    },
    Work {
        name: STORM,
        second_tier: false,
        run: |_| {
            let (wait, _hold) = rustix::pipe::pipe()?;
            for _ in 0..PROCESSES_MAX * 2 {
                // SAFETY: this thread is the only one.
                match unsafe { raw::fork() } {
                    Ok(raw::Fork::Parent) => {}
                    Ok(raw::Fork::Child) => {
                        let _ = rustix::io::read(&wait, &mut [0; 1]);
                        raw::exit_now();
                    }
                    Err(_) => return Ok(()),
                }
            }
            Err(io::Error::other("it does not end"))
        },
    },
    Work {
        name: "own-tmp",
        second_tier: false,
        run: |_| fs::write("/tmp/own", "x"),
    },
    Work {
        name: "shared-memory",
        second_tier: false,
        run: |_| fs::write("/dev/shm/own", "x"),
    },
    Work {
        name: "own-network",
        second_tier: false,
        run: |_| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let _client = TcpStream::connect(listener.local_addr()?)?;
            listener.accept().map(drop)
        },
    },
    Work {
        name: "list-of-addresses",
        second_tier: false,
        run: |_| raw::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE).map(drop),
    },
];

fn expect(well: bool, what: &str) -> io::Result<()> {
    if well {
        Ok(())
    } else {
        Err(io::Error::other(what.to_owned()))
    }
}
