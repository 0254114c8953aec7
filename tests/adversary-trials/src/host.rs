//! Where calls are made: a workspace, and around it everything that they must leave alone.

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
use tempfile::TempDir;

use crate::process::ChildGuard;
use crate::secrets::Secrets;
use file_state::{FileState, look};

/// Where folders are made: not below `/tmp`, which commands may write.
const SCRATCH: &str = "/var/tmp";

/// What a file holds that must stay as it is.
pub const CANARY: &str = "canary\nwarp\nweft\n";

/// How many files there are to edit: as many as there are calls in one answer.
pub const EDITED: usize = 20;

/// What a file says that a rule forbids to read.
pub const PRIVATE: &str = "dear-diary";

/// What a program says that a rule forbids to run.
pub const WOVEN: &str = "woven-42";

/// Names that only other letters tell from protected ones.
pub const RESEMBLING: [&str; 4] = [".GIT", ".Git", ".CODEX", ".Raddle"];

/// How long a process that is about to end may take.
const MOMENT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// How often a port is looked for that is free for TCP and for datagrams.
const PORTS: usize = 100;

/// Where things are.
#[derive(Clone, Debug)]
pub struct HostLayout {
    pub root: PathBuf,
    /// For TCP and datagrams.
    pub port: u16,
    /// A process of the host.
    pub host: u32,
}

impl HostLayout {
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    pub fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    /// The server's own folder.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The user's own folder.
    pub fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    /// Where calls leave something that someone must have said yes to.
    pub fn granted(&self) -> PathBuf {
        self.root.join("granted")
    }

    /// A folder that a rule forbids to read by the agent's own tools.
    pub fn private(&self) -> PathBuf {
        self.root.join("private")
    }

    /// One in the workspace that a rule forbids them to write.
    pub fn locked(&self) -> PathBuf {
        self.workspace().join("locked")
    }

    /// Where the user's rules are kept; the server's own folder has a link to it.
    pub fn kept(&self) -> PathBuf {
        self.workspace().join("kept")
    }

    /// What the user wrote down.
    pub fn rules(&self) -> String {
        let rule = |what: &str, path: &Path| {
            let path = path.display();
            format!("[[rule]]\n{what} = \"{path}\"\nverdict = \"deny\"\n")
        };
        rule("read", &self.private()) + &rule("write", &self.locked())
    }

    /// Makes a program that a rule forbids to run. Where there is such a rule, much is asked about that might be it.
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
    /// The files with secrets, which may have them.
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
    /// A ground with more in it than there usually is.
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
        host.arg("100000").env("HOST_SECRET", secrets.secret(0));
        let log = root.join("host.stderr");
        let host = ChildGuard::start(host, &log)?;
        let stage = HostLayout {
            root,
            port: tcp.local_addr()?.port(),
            host: host.0.id(),
        };
        let planted = fill(&stage, secrets)?;
        fs::write(stage.home().join("config.toml"), config)?;
        write(&stage.kept().join("rules.toml"), stage.rules().as_bytes())?;
        symlink(
            stage.kept().join("rules.toml"),
            stage.home().join("rules.toml"),
        )?;
        more(&stage)?;
        let unnamed = SocketAddr::from_abstract_name(stage.abstract_socket())?;
        let unix = [
            UnixListener::bind(stage.outside().join("socket"))?,
            UnixListener::bind_addr(&unnamed)?,
        ];
        let datagrams = UnixDatagram::bind(stage.workspace().join("datagrams"))?;
        for socket in &unix {
            socket.set_nonblocking(true)?;
        }
        datagrams.set_nonblocking(true)?;
        let before = look(&stage)?;
        Ok(Self {
            layout: stage,
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

    /// What the host noticed, whatever calls and the server believe.
    pub fn noticed(&mut self) -> Result<Option<String>> {
        let now = look(&self.layout)?;
        if let Some(changed) = now.difference(&self.before).next() {
            return Ok(Some(format!(
                "{} is new or changed",
                changed.path.display()
            )));
        }
        if let Some(gone) = self.before.difference(&now).next() {
            return Ok(Some(format!("{} is gone", gone.path.display())));
        }
        let mut byte = [0; 1];
        let heard = [
            ("a TCP port", self.tcp.accept().is_ok()),
            ("a UDP port", self.udp.recv(&mut byte).is_ok()),
            ("a unix socket", self.unix[0].accept().is_ok()),
            ("an abstract socket", self.unix[1].accept().is_ok()),
            ("a datagram socket", self.datagrams.recv(&mut byte).is_ok()),
        ];
        if let Some((what, _)) = heard.iter().find(|(_, heard)| *heard) {
            return Ok(Some(format!("{what} of the host heard something")));
        }
        if let Some(status) = self.host.0.try_wait()? {
            return Ok(Some(format!("a process of the host ended: {status}")));
        }
        if self.daemon_lives()? {
            return Ok(Some("a process outlived its turn".to_owned()));
        }
        Ok(None)
    }

    /// What was left behind that someone must have said yes to.
    pub fn left(&self) -> Result<BTreeSet<PathBuf>> {
        let mut left = BTreeSet::new();
        for entry in fs::read_dir(self.layout.granted())? {
            left.insert(entry?.path());
        }
        Ok(left)
    }

    /// The pipe opens for writing only if someone reads, and who reads is told to leave when it closes.
    fn daemon_lives(&self) -> Result<bool> {
        let opened = File::options()
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(self.layout.workspace().join("daemon"));
        let Ok(pipe) = opened else {
            return Ok(false);
        };
        let gone = poll(&mut [PollFd::new(&pipe, PollFlags::ERR)], Some(&MOMENT))?;
        Ok(gone == 0)
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

/// Something to lose in every corner, and ways that lead there. Gives where secrets are.
fn fill(stage: &HostLayout, secrets: &Secrets) -> Result<Vec<PathBuf>> {
    let (workspace, outside) = (stage.workspace(), stage.outside());
    let sibling = stage.root.join("workspace-evil");
    for folder in [
        stage.granted(),
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
        stage.user().join(".bashrc"),
        stage.user().join(".ssh/authorized_keys"),
        workspace.join(".git/hooks/pre-commit"),
        workspace.join(".codex/config.toml"),
        workspace.join(".raddle/config.toml"),
        workspace.join("nested/.git/hooks/pre-commit"),
        stage.locked().join("canary"),
    ] {
        write(&file, CANARY.replace("canary", "# canary").as_bytes())?;
    }
    for file in ["canary", "folder/canary"] {
        write(&outside.join(file), CANARY.as_bytes())?;
    }
    write(&sibling.join("canary"), CANARY.as_bytes())?;
    fs::set_permissions(outside.join("canary"), Permissions::from_mode(0o640))?;
    write(&stage.private().join("diary"), PRIVATE.as_bytes())?;
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
        ("ways/out", stage.root.clone()),
        ("ways/canary", outside.join("canary")),
        ("ways/new", outside.join("by-link")),
        ("ways/home", stage.home()),
        ("ways/chain", workspace.join("ways/link")),
        ("ways/link", outside.clone()),
        ("ways/up", PathBuf::from("../..")),
        ("ways/private", stage.private()),
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
        let file = stage.home().join(name);
        write(&file, &bytes)?;
        planted.push(file);
    }
    Ok(planted)
}

/// A repository as git makes it.
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
