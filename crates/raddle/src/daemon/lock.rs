//! The daemon's locks in a home. The kernel releases them when the process ends, and reports the
//! holder of one of them, so no pid is stored in a file.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use raddle_console::Printer;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use serde::{Deserialize, Serialize};

use super::POLL_INTERVAL;
use crate::app_server::Lifecycle;
use crate::home::{self, Home};
use crate::log;

/// How often a lock is tried that another process may hold briefly.
const LOCK_ATTEMPTS_MAX: usize = 10;

/// A daemon's description of itself, in the file that it has locked. Written once it accepts
/// clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DaemonInfo {
    pub(super) version: String,
    pub(super) listen: Vec<String>,
    /// The path of its log, unless it logs to stderr.
    pub(super) log: Option<PathBuf>,
    /// It accepts no more clients.
    pub(super) ending: bool,
}

/// The daemon that holds the lock.
#[derive(Clone, Debug)]
pub(super) struct RunningDaemon {
    /// `None` if its process is not visible from here, as in another container.
    pub(super) pid: Option<Pid>,
    /// `None` while it starts.
    pub(super) info: Option<DaemonInfo>,
}

impl fmt::Display for RunningDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, " (pid {pid})"),
            None => Ok(()),
        }
    }
}

/// Looks for the daemon of a home.
pub(super) fn look(home: &Home) -> Result<Option<RunningDaemon>> {
    let path = lock_path(home);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let holder = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock))
        .with_context(|| format!("cannot see who has locked {}", path.display()))?;
    let pid = match holder {
        Some(holder) => holder.pid,
        None if is_held(&file)? => None,
        None => return Ok(None),
    };
    let text = io::read_to_string(&file).unwrap_or_default();
    Ok(Some(RunningDaemon {
        pid,
        info: serde_json::from_str(&text).ok(),
    }))
}

/// Whether a process holds the `flock`, which cannot be lost. The check itself takes it for a
/// moment.
fn is_held(file: &File) -> Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error).context("cannot see whether a daemon runs"),
    }
}

/// Serialises the processes that stop the daemon. Held until this is dropped.
pub(super) struct StopLock {
    _lock: File,
}

impl StopLock {
    /// Blocks until the other processes have released the lock.
    pub(super) fn take(home: &Home) -> Result<Self> {
        let path = home.daemon().join("stop");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        flock(&lock, FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { _lock: lock })
    }
}

/// The locks of the running daemon, held until the process ends.
pub(super) struct DaemonLock {
    /// Carries two locks. The POSIX lock reveals the pid of its holder, but is lost when this
    /// process opens and closes the file again, as it does for a client that reads it. The `flock`
    /// stays.
    lock: File,
    info: DaemonInfo,
    is_detached: bool,
}

impl DaemonLock {
    /// Takes the locks. Returns `None` if another process holds them.
    pub(super) fn take(home: &Home, is_detached: bool) -> Result<Option<Self>> {
        let folder = home.daemon();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(|| home::not_made(&folder))?;
        let path = lock_path(home);
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        if !hold(&lock).with_context(|| format!("cannot lock {}", path.display()))? {
            return Ok(None);
        }
        // Remove the description of the previous daemon.
        lock.set_len(0)?;
        let info = DaemonInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            log: is_detached.then(|| folder.join("daemon.log")),
            ..DaemonInfo::default()
        };
        Ok(Some(Self {
            lock,
            info,
            is_detached,
        }))
    }

    fn write(&self) -> Result<()> {
        let bytes = serde_json::to_vec(&self.info)?;
        self.lock.write_all_at(&bytes, 0)?;
        Ok(self.lock.set_len(u64::try_from(bytes.len())?)?)
    }

    /// Moves the log to its file, reports readiness to the parent and closes stdout.
    fn detach(&self) -> Result<()> {
        if let Some(path) = &self.info.log {
            log::move_to(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut printer = Printer::new();
        printer.line(&serde_json::to_string(&self.info)?)?;
        printer.flush()?;
        if printer.is_closed() {
            bail!("the process that started the daemon did not wait for it");
        }
        let null = OpenOptions::new().write(true).open("/dev/null")?;
        Ok(rustix::stdio::dup2_stdout(null)?)
    }
}

impl Lifecycle for DaemonLock {
    fn ready(&mut self, addresses: &[String]) -> Result<()> {
        self.info.listen = addresses.to_vec();
        self.write()?;
        if self.is_detached {
            return self.detach();
        }
        notify("READY=1");
        Ok(())
    }

    fn ending(&mut self) {
        self.info.ending = true;
        if let Err(error) = self.write() {
            tracing::warn!(%error, "cannot record that the daemon is stopping");
        }
        notify("STOPPING=1");
    }

    /// Service managers kill a server that sends no heartbeat for too long: systemd's
    /// `WatchdogSec`.
    fn heartbeat(&self) -> Box<dyn FnMut() + Send> {
        let is_wanted = !self.is_detached && std::env::var_os("WATCHDOG_USEC").is_some();
        Box::new(move || {
            if is_wanted {
                notify("WATCHDOG=1");
            }
        })
    }
}

/// Takes the `flock`. Returns false if another process holds it; a process that only looks holds it
/// for a moment.
fn hold(lock: &File) -> Result<bool, Errno> {
    for _ in 0..LOCK_ATTEMPTS_MAX {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => thread::sleep(POLL_INTERVAL),
            result => return result.map(|()| true),
        }
    }
    Ok(false)
}

fn lock_path(home: &Home) -> PathBuf {
    home.daemon().join("lock")
}

/// Notifies the service manager, if it asked for it: systemd's `Type=notify`.
fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(Path::new(&name)),
    };
    let sent = address.and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(state.as_bytes(), &address)
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
