//! PostgreSQL, as one server or as a cluster, by the script of the repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where Debian has the programs of the server.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Library that changes the time of a process. The loader replaces `$LIB`.
const FAKETIME: &str = "/usr/$LIB/faketime/libfaketime.so.1";

/// Servers that the runs of a fault need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    Single,
    /// One server whose clock the trial moves.
    SingleWithClock,
    Cluster,
    /// A cluster whose disks are small enough to be filled.
    SmallCluster,
}

impl ServerKind {
    pub fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster | Self::SmallCluster)
    }
}

/// Running servers, which end with this value.
pub struct DatabaseServer {
    pub kind: ServerKind,
    script: PathBuf,
    folder: tempfile::TempDir,
}

impl DatabaseServer {
    pub fn start(script: &Path, kind: ServerKind) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // The server runs as another user if we are root, and must be able to enter the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let server = Self {
            kind,
            script: script.to_owned(),
            folder,
        };
        match kind {
            ServerKind::Single => server.script("single", &["max_connections=400"])?,
            ServerKind::SingleWithClock => {
                server.add_clock()?;
                server.script("single", &["max_connections=400"])?
            }
            ServerKind::Cluster => server.script("up", &["--ttl", "12"])?,
            ServerKind::SmallCluster => server.script("up", &["--ttl", "12", "--tmpfs", "400m"])?,
        };
        Ok(server)
    }

    /// Runs the script, and returns what it prints.
    pub fn script(&self, verb: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("bash");
        command
            .arg(&self.script)
            .arg(verb)
            .arg(self.folder.path().join("pg"))
            .args(arguments)
            .stdin(Stdio::null());
        // Several trials may start servers at once, and would choose the same ports.
        let base = 30_000 + std::process::id() % 1000 * 25;
        command.env("PG_BASE_PORT", base.to_string());
        if self.kind == ServerKind::SingleWithClock {
            command.env("PG_BIN", self.folder.path().join("bin"));
        }
        let output = command.output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("pg-cluster.sh {verb} {arguments:?}: {}", errors.trim());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    pub fn address(&self) -> Result<String> {
        self.script("dsn", &[])
    }

    /// Writes programs that run the server with the time of a file.
    fn add_clock(&self) -> Result<()> {
        let bin = self.folder.path().join("bin");
        fs::create_dir(&bin)?;
        for entry in fs::read_dir(PROGRAMS)? {
            let entry = entry?;
            std::os::unix::fs::symlink(entry.path(), bin.join(entry.file_name()))?;
        }
        fs::remove_file(bin.join("postgres"))?;
        let program = format!(
            "#!/bin/sh\n\
             export LD_PRELOAD='{FAKETIME}' FAKETIME_TIMESTAMP_FILE='{}'\n\
             export FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n\
             exec {PROGRAMS}/postgres \"$@\"\n",
            self.clock_file().display()
        );
        fs::write(bin.join("postgres"), program)?;
        fs::set_permissions(bin.join("postgres"), fs::Permissions::from_mode(0o755))?;
        self.set_clock("+0")
    }

    fn clock_file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Sets the offset of the server's clock, such as `+1d`.
    pub fn set_clock(&self, offset: &str) -> Result<()> {
        let file = self.clock_file();
        let new = file.with_extension("new");
        fs::write(&new, format!("{offset}\n"))?;
        fs::rename(&new, &file).context("cannot set the clock of the server")
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        if let Err(error) = self.script("down", &[]) {
            eprintln!("the server did not end: {error:#}");
        }
    }
}

/// Returns the port in the address of one server.
pub fn port(address: &str) -> Result<u16> {
    let port = address.split(' ').find_map(|it| it.strip_prefix("port="));
    Ok(port.context("an address without a port")?.parse()?)
}
