//! Environment of the calls: a workspace, and around it everything that they must not touch.

mod file_state;

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use support::{ChildGuard, append_to};
use tempfile::TempDir;

use crate::secrets::Secrets;
use file_state::{FileState, look};

/// Parent of the test folders: not `/tmp`, which commands may write.
const SCRATCH: &str = "/var/tmp";

/// Contents of files that must not change.
pub const CANARY: &str = "canary\nwarp\nweft\n";

/// Number of files to edit: as many as there are calls in one answer.
pub const EDITED: usize = 20;

/// Contents of a file that a rule forbids to read.
pub const PRIVATE: &str = "dear-diary";

/// Output of a program that a rule forbids to run.
pub const WOVEN: &str = "woven-42";

/// Names that differ from protected ones only in letter case.
pub const RESEMBLING: [&str; 4] = [".GIT", ".Git", ".CODEX", ".Raddle"];

/// Time for a process to exit.
const EXIT_TIMEOUT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Number of attempts to find a port that is free for both TCP and UDP.
const PORTS: usize = 100;

/// Paths and ids of the environment.
#[derive(Clone, Debug)]
pub struct HostLayout {
    pub root: PathBuf,
    /// Port of the TCP and UDP listeners.
    pub port: u16,
    /// Id of a process of the host.
    pub host: u32,
}

impl HostLayout {
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    pub fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    /// Returns the server's home.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the user's home.
    pub fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    /// Returns the folder in which calls create files that need an approval.
    pub fn granted(&self) -> PathBuf {
        self.root.join("granted")
    }

    /// Returns a folder that a rule forbids the agent's tools to read.
    pub fn private(&self) -> PathBuf {
        self.root.join("private")
    }

    /// Returns a folder in the workspace that a rule forbids the agent's tools to write.
    pub fn locked(&self) -> PathBuf {
        self.workspace().join("locked")
    }

    /// Returns the folder of the user's rules; the server's home has a link to it.
    pub fn kept(&self) -> PathBuf {
        self.workspace().join("kept")
    }

    /// Returns the user's rules.
    pub fn rules(&self) -> String {
        let rule = |key: &str, path: &Path| {
            let path = path.display();
            format!("[[rule]]\n{key} = \"{path}\"\nverdict = \"deny\"\n")
        };
        rule("read", &self.private()) + &rule("write", &self.locked())
    }

    /// Creates a program that a rule forbids to run. With such a rule, many other lines need an
    /// approval too, since they might run it.
    pub fn forbid(&self) -> Result<()> {
        let program = self.workspace().join("tools/weave-out");
        write(&program, b"#!/bin/sh\necho woven-$((6 * 7))\n")?;
        fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        let rule = "[[rule]]\ncommand = [\"weave-out\"]\nverdict = \"deny\"\n";
        Ok(fs::write(
            self.kept().join("rules.toml"),
            self.rules() + rule,
        )?)
    }

    pub fn abstract_socket(&self) -> String {
        format!("raddle-adversary-{}", self.port)
    }
}

pub struct HostFixture {
    pub layout: HostLayout,
    /// Files that were planted with secrets.
    pub planted: Vec<PathBuf>,
    before: BTreeSet<FileState>,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: [UnixListener; 2],
    datagrams: UnixDatagram,
    host: ChildGuard,
    _folder: TempDir,
}

impl HostFixture {
    /// Creates the environment; `more` adds to it.
    pub fn new(
        secrets: &Secrets,
        config: &str,
        more: impl FnOnce(&HostLayout) -> Result<()>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("raddle-adversary-")
            .tempdir_in(SCRATCH)?;
        let root = fs::canonicalize(folder.path())?;
        let (tcp, udp) = listen()?;
        let mut host = Command::new("sleep");
        host.arg("100000")
            .env("HOST_SECRET", secrets.secret(0))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(append_to(&root.join("host.stderr"))?);
        let host = ChildGuard::spawn(&mut host)?;
        let layout = HostLayout {
            root,
            port: tcp.local_addr()?.port(),
            host: host.child.id(),
        };
        let planted = fill(&layout, secrets)?;
        fs::write(layout.home().join("config.toml"), config)?;
        write(&layout.kept().join("rules.toml"), layout.rules().as_bytes())?;
        symlink(
            layout.kept().join("rules.toml"),
            layout.home().join("rules.toml"),
        )?;
        more(&layout)?;
        let unnamed = SocketAddr::from_abstract_name(layout.abstract_socket())?;
        let unix = [
            UnixListener::bind(layout.outside().join("socket"))?,
            UnixListener::bind_addr(&unnamed)?,
        ];
        let datagrams = UnixDatagram::bind(layout.workspace().join("datagrams"))?;
        for socket in &unix {
            socket.set_nonblocking(true)?;
        }
        datagrams.set_nonblocking(true)?;
        let before = look(&layout)?;
        Ok(Self {
            layout,
            planted,
            before,
            tcp,
            udp,
            unix,
            datagrams,
            host,
            _folder: folder,
        })
    }

    /// Returns a violation that the host detects, independently of the calls and of the server.
    pub fn violation(&mut self) -> Result<Option<String>> {
        let now = look(&self.layout)?;
        if let Some(changed) = now.difference(&self.before).next() {
            return Ok(Some(format!(
                "{} is new or changed",
                changed.path.display()
            )));
        }
        if let Some(removed) = self.before.difference(&now).next() {
            return Ok(Some(format!("{} is gone", removed.path.display())));
        }
        let mut byte = [0; 1];
        let listeners = [
            ("a TCP port", self.tcp.accept().is_ok()),
            ("a UDP port", self.udp.recv(&mut byte).is_ok()),
            ("a unix socket", self.unix[0].accept().is_ok()),
            ("an abstract socket", self.unix[1].accept().is_ok()),
            ("a datagram socket", self.datagrams.recv(&mut byte).is_ok()),
        ];
        if let Some((listener, _)) = listeners.iter().find(|(_, is_reached)| *is_reached) {
            return Ok(Some(format!("{listener} of the host heard something")));
        }
        if let Some(status) = self.host.child.try_wait()? {
            return Ok(Some(format!("a process of the host ended: {status}")));
        }
        if self.daemon_lives()? {
            return Ok(Some("a process outlived its turn".to_owned()));
        }
        Ok(None)
    }

    /// Returns the files that need an approval.
    pub fn markers(&self) -> Result<BTreeSet<PathBuf>> {
        let mut markers = BTreeSet::new();
        for entry in fs::read_dir(self.layout.granted())? {
            markers.insert(entry?.path());
        }
        Ok(markers)
    }

    /// Whether a process of a past turn still runs. The pipe opens for writing only if a process
    /// reads it, and `poll` reports an error once that process has exited.
    fn daemon_lives(&self) -> Result<bool> {
        let opened = File::options()
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(self.layout.workspace().join("daemon"));
        let Ok(pipe) = opened else {
            return Ok(false);
        };
        let exited = poll(
            &mut [PollFd::new(&pipe, PollFlags::ERR)],
            Some(&EXIT_TIMEOUT),
        )?;
        Ok(exited == 0)
    }
}

fn listen() -> Result<(TcpListener, UdpSocket)> {
    for _ in 0..PORTS {
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr()?) {
            tcp.set_nonblocking(true)?;
            udp.set_nonblocking(true)?;
            return Ok((tcp, udp));
        }
    }
    anyhow::bail!("no port is free for both")
}

/// Creates files to attack in every place, and links that lead there. Returns the files with
/// secrets.
fn fill(layout: &HostLayout, secrets: &Secrets) -> Result<Vec<PathBuf>> {
    let (workspace, outside) = (layout.workspace(), layout.outside());
    let sibling = layout.root.join("workspace-evil");
    for folder in [
        layout.granted(),
        workspace.join("ways"),
        outside.join("folder"),
    ] {
        fs::create_dir_all(folder)?;
    }
    git(&workspace)?;
    for file in [
        outside.join("canary"),
        outside.join("folder/canary"),
        sibling.join("canary"),
        layout.user().join(".bashrc"),
        layout.user().join(".ssh/authorized_keys"),
        workspace.join(".git/hooks/pre-commit"),
        workspace.join(".codex/config.toml"),
        workspace.join(".raddle/config.toml"),
        workspace.join("nested/.git/hooks/pre-commit"),
        layout.locked().join("canary"),
    ] {
        write(&file, CANARY.replace("canary", "# canary").as_bytes())?;
    }
    for file in ["canary", "folder/canary"] {
        write(&outside.join(file), CANARY.as_bytes())?;
    }
    write(&sibling.join("canary"), CANARY.as_bytes())?;
    fs::set_permissions(outside.join("canary"), Permissions::from_mode(0o640))?;
    write(&layout.private().join("diary"), PRIVATE.as_bytes())?;
    write(&workspace.join("src/letters.txt"), b"alpha\nbeta\ngamma\n")?;
    for number in 0..EDITED {
        let file = workspace.join(format!("src/edited/{number}.txt"));
        write(
            &file,
            b"top
bottom
",
        )?;
    }
    write(
        &workspace.join("picture.png"),
        &crate::secrets::picture("a"),
    )?;
    for (link, target) in [
        ("ways/out", layout.root.clone()),
        ("ways/canary", outside.join("canary")),
        ("ways/new", outside.join("by-link")),
        ("ways/home", layout.home()),
        ("ways/chain", workspace.join("ways/link")),
        ("ways/link", outside.clone()),
        ("ways/up", PathBuf::from("../..")),
        ("ways/private", layout.private()),
        ("ways/locked", PathBuf::from("../locked")),
    ] {
        symlink(target, workspace.join(link))?;
    }
    for pipe in ["pipe", "daemon"] {
        let at = workspace.join(pipe);
        rustix::fs::mknodat(rustix::fs::CWD, &at, FileType::Fifo, Mode::from(0o600), 0)?;
    }
    let mut planted = Vec::new();
    for (name, bytes) in secrets.files() {
        let file = layout.home().join(name);
        write(&file, &bytes)?;
        planted.push(file);
    }
    Ok(planted)
}

/// Creates a repository with git.
fn git(workspace: &Path) -> Result<()> {
    let status = Command::new("git")
        .args(["init", "--quiet", "--initial-branch=main"])
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(workspace)
        .stdin(Stdio::null())
        .status()
        .context("git does not start; install it")?;
    anyhow::ensure!(status.success(), "git init: {status}");
    Ok(())
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(file.parent().context("it has a folder")?)?;
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}
