//! The environment of one attempt: folders with something to lose, a host that listens, and what it
//! noticed.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use raddle_sandbox::attempt::{self, Testbed};
use raddle_sandbox::{PROTECTED, ReadScope, SandboxRules, Tier, Tmp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;
use tempfile::TempDir;

use crate::syscalls;

/// A secret in the environment of the process that stands for the server.
pub const CANARY: &str = "sandbox-escapes-canary-5f1c2a";
/// Returns the key of the host's message queue; the port makes it unique.
pub fn queue_key(testbed: &Testbed) -> usize {
    0x5261_0000 | usize::from(testbed.tcp)
}

/// Returns the name of the host's named queue.
pub fn queue_name(testbed: &Testbed) -> CString {
    let name = format!("sandbox-escapes-{}", testbed.tcp);
    CString::new(name).unwrap_or_default()
}

/// Most processes that the rules allow.
pub const PROCESSES_MAX: u64 = 64;

/// How long a killed process may take to disappear.
const EXIT_TIMEOUT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Attempts to find a port that is free for TCP and for datagrams.
const PORT_TRIES_MAX: usize = 100;

pub struct EscapeHost {
    pub testbed: Testbed,
    before: Vec<FileSnapshot>,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: [UnixListener; 2],
    datagrams: UnixDatagram,
    queue: i64,
    _named_queue: OwnedFd,
    /// Left open for child processes, as a careless server would.
    _left_open: (File, UnixStream),
    /// The other end of a socket that was left open.
    leaked: UnixStream,
    _folder: TempDir,
}

impl EscapeHost {
    pub fn new(scratch: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("ground-")
            .tempdir_in(scratch)?;
        let (tcp, udp) = listen()?;
        let host = std::process::id();
        let testbed = Testbed {
            folder: fs::canonicalize(folder.path())?,
            tcp: tcp.local_addr()?.port(),
            host,
            host_began: attempt::began(host)?,
        };
        fill(&testbed)?;
        let abstract_address = SocketAddr::from_abstract_name(testbed.abstract_socket())?;
        let unix = [
            UnixListener::bind(testbed.socket())?,
            UnixListener::bind_addr(&abstract_address)?,
        ];
        let datagrams = UnixDatagram::bind(testbed.workspace().join("datagrams"))?;
        for socket in &unix {
            socket.set_nonblocking(true)?;
        }
        datagrams.set_nonblocking(true)?;
        let (leaked, left_open) = UnixStream::pair()?;
        leaked.set_nonblocking(true)?;
        let left_open = (File::open(testbed.outside())?, left_open);
        rustix::io::fcntl_setfd(&left_open.0, FdFlags::empty())?;
        rustix::io::fcntl_setfd(&left_open.1, FdFlags::empty())?;
        let (name, make) = (
            queue_name(&testbed),
            (libc::O_CREAT | libc::O_RDWR) as usize,
        );
        let named_queue = syscalls::call(libc::SYS_mq_open, &[syscalls::at(&name), make, 0o600, 0])
            .context("a named queue")?;
        let before = snapshot(&testbed)?;
        // Last, because from here on `drop` removes it whatever happens.
        let make = (libc::IPC_CREAT | 0o600) as usize;
        let queue = syscalls::call(libc::SYS_msgget, &[queue_key(&testbed), make])
            .context("a message queue")?;
        Ok(Self {
            testbed,
            before,
            tcp,
            udp,
            unix,
            datagrams,
            queue,
            _named_queue: syscalls::owned(named_queue),
            leaked,
            _left_open: left_open,
            _folder: folder,
        })
    }

    /// Returns the rules that the sandbox must enforce.
    pub fn rules(&self, tier: Tier, program: &Path) -> SandboxRules {
        let readable = self.testbed.folder.join("readable");
        let mut rules = SandboxRules::workspace_write(vec![
            self.testbed.workspace(),
            self.testbed.folder.join("tree"),
        ]);
        rules.processes_max = Some(PROCESSES_MAX);
        rules.read = ReadScope::Listed(vec![readable.clone(), program.to_owned()]);
        if tier == Tier::A {
            let around = self.testbed.workspace().join("around");
            rules.hidden = vec![
                readable.join("hidden"),
                readable.join("hidden-file"),
                around.join("hidden"),
            ];
            rules.tmp = Tmp::Private;
        } else {
            // This tier would refuse the rules; what it cannot enforce is published.
            rules.protected.clear();
        }
        rules
    }

    /// Returns what the host noticed, whatever the attempt itself reports.
    pub fn detect_escape(&self) -> Result<Option<String>> {
        let now = snapshot(&self.testbed)?;
        if let Some(changed) = now.iter().find(|it| !self.before.contains(it)) {
            return Ok(Some(format!("{} is not as it was", changed.path.display())));
        }
        if let Some(removed) = self.before.iter().find(|it| !now.contains(it)) {
            return Ok(Some(format!("{} is gone", removed.path.display())));
        }
        for file in self.marks() {
            if fs::remove_file(&file).is_ok() {
                return Ok(Some(format!("{} was made", file.display())));
            }
        }
        let mut byte = [0; 1];
        let is_reached = self.tcp.accept().is_ok()
            || self.udp.recv(&mut byte).is_ok()
            || self.unix.iter().any(|it| it.accept().is_ok())
            || self.datagrams.recv(&mut byte).is_ok()
            || (&self.leaked).read(&mut byte).is_ok_and(|it| it > 0);
        if is_reached {
            return Ok(Some("a socket of the host heard it".to_owned()));
        }
        if self.daemon_lives()? {
            return Ok(Some("a daemon lives".to_owned()));
        }
        Ok(None)
    }

    /// Returns whether a daemon is alive. The pipe opens for writing only if a process reads it,
    /// and a reader gets an event when it closes. A process that is about to end gets a moment to
    /// do so.
    fn daemon_lives(&self) -> Result<bool> {
        let result = File::options()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.testbed.workspace().join("daemon"));
        let pipe = match result {
            Ok(pipe) => pipe,
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO)) => {
                return Ok(false);
            }
            Err(error) => return Err(error).context("the daemon's pipe"),
        };
        let events = poll(
            &mut [PollFd::new(&pipe, PollFlags::ERR)],
            Some(&EXIT_TIMEOUT),
        )?;
        Ok(events == 0)
    }

    /// Returns the paths at which attempts leave a file that the host may see.
    fn marks(&self) -> [PathBuf; 3] {
        ["/tmp", "/dev/shm", "/etc"]
            .map(|it| format!("{it}/sandbox-escapes-{}", self.testbed.tcp).into())
    }
}

impl Drop for EscapeHost {
    fn drop(&mut self) {
        // So that the folder can be removed.
        let _ = fs::set_permissions(closed(&self.testbed), Permissions::from_mode(0o755));
        let _ = syscalls::call(
            libc::SYS_msgctl,
            &[self.queue as usize, libc::IPC_RMID as usize, 0],
        );
        let _ = syscalls::call(
            libc::SYS_mq_unlink,
            &[syscalls::at(&queue_name(&self.testbed))],
        );
    }
}

fn listen() -> io::Result<(TcpListener, UdpSocket)> {
    for _ in 0..PORT_TRIES_MAX {
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr()?) {
            tcp.set_nonblocking(true)?;
            udp.set_nonblocking(true)?;
            return Ok((tcp, udp));
        }
    }
    Err(io::Error::other("no port is free for both"))
}

/// Creates files that an escape would change or reveal.
fn fill(testbed: &Testbed) -> Result<()> {
    let workspace = testbed.workspace();
    let store = workspace.join("store");
    let link = format!("gitdir: {}\n", store.join("worktrees/tree").display());
    for (file, text) in [
        (testbed.outside().join("canary"), "canary"),
        (testbed.folder.join("readable/file"), "file"),
        (testbed.folder.join("readable/hidden/secret"), "secret"),
        (testbed.folder.join("readable/hidden-file"), "secret"),
        (testbed.folder.join("tree/.git"), &link),
        (workspace.join("around/hidden/secret"), "secret"),
        (workspace.join(".git/HEAD"), "ref: refs/heads/main\n"),
        (workspace.join(".git/config"), CONFIG),
        (workspace.join("hooks/sample"), ""),
        (workspace.join("team.config"), ""),
        (workspace.join("tools/show"), ""),
        (
            workspace.join("vendor/lib/.git"),
            "gitdir: ../../.git/modules/lib\n",
        ),
        (workspace.join("closed/deep/.git/config"), ""),
        (workspace.join("linked/store/config"), ""),
        (workspace.join(".git/hooks/sample"), ""),
        (workspace.join("nested/.git/hooks/sample"), ""),
        (store.join("hooks/sample"), ""),
        (store.join("worktrees/tree/commondir"), "../..\n"),
    ] {
        fs::create_dir_all(file.parent().context("it has a folder")?)?;
        fs::write(file, text)?;
    }
    fs::create_dir(workspace.join("pending"))?;
    fs::write(workspace.join(".git/index"), index(&["absent", "pending"]))?;
    symlink("store", workspace.join("linked/.git"))?;
    fs::set_permissions(closed(testbed), Permissions::from_mode(0o000))?;
    Ok(())
}

/// Settings of the repository that name paths in its work tree.
const CONFIG: &str = "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../team.config\n\tpath = ../missing.config\n\
    [diff \"x\"]\n\ttextconv = tools/show --plain\n";

/// Returns a folder that cannot be entered.
fn closed(testbed: &Testbed) -> PathBuf {
    testbed.workspace().join("closed")
}

/// Builds a git index that names these submodules and nothing else.
fn index(paths: &[&str]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend((paths.len() as u32).to_be_bytes());
    for path in paths {
        let begin = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(0o160_000_u32.to_be_bytes());
        bytes.extend([0; 32]);
        bytes.extend((path.len() as u16).to_be_bytes());
        bytes.extend(path.as_bytes());
        bytes.resize(bytes.len() + 8 - (bytes.len() - begin) % 8, 0);
    }
    bytes.extend([0; 20]);
    bytes
}

#[derive(PartialEq)]
struct FileSnapshot {
    path: PathBuf,
    mode: u32,
    modified: (i64, i64),
    bytes: Option<Vec<u8>>,
}

/// Takes a snapshot of every path that must not change. Times of folders do not count: those of the
/// workspace may change.
fn snapshot(testbed: &Testbed) -> Result<Vec<FileSnapshot>> {
    let workspace = testbed.workspace();
    let mut paths = vec![
        testbed.outside(),
        testbed.folder.join("readable"),
        testbed.folder.join("tree/.git"),
        workspace.join("nested/.git"),
        workspace.join("store"),
        workspace.join("hooks"),
        workspace.join("team.config"),
        workspace.join("tools"),
        workspace.join("vendor/lib/.git"),
        workspace.join("linked"),
    ];
    paths.extend(PROTECTED.map(|it| workspace.join(it)));
    let mut snapshots = Vec::new();
    while let Some(path) = paths.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
        }
        let is_file = metadata.is_file();
        snapshots.push(FileSnapshot {
            mode: metadata.mode(),
            modified: if is_file {
                (metadata.mtime(), metadata.mtime_nsec())
            } else {
                (0, 0)
            },
            bytes: if is_file { fs::read(&path).ok() } else { None },
            path,
        });
    }
    Ok(snapshots)
}
