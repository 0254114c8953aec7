//! Attempts to break out, made inside a sandbox on a [`Testbed`] where a success does no harm.
//!
//! [`CORE`] is the list with which a sandbox tests itself on the user's machine. Many more are in
//! `tests/sandbox-escapes`.

mod core;

pub use self::core::CORE;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An operation that must fail inside a sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// A short name in kebab case.
    pub name: &'static str,
    /// The property that holds when the attempt fails.
    pub shows: &'static str,
    /// Whether the second tier stops it.
    pub second_tier: SecondTier,
    /// Makes the attempt. `Ok` means that it broke out.
    pub run: fn(&Testbed) -> io::Result<()>,
}

/// Whether the second tier stops an attempt. Every attempt that it does not stop is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondTier {
    /// Stopped by every version of Landlock.
    Stopped,
    /// Stopped from this version of Landlock on.
    StoppedFrom(i64),
    /// Not stopped; stopping it needs namespaces.
    Open,
}

impl SecondTier {
    /// Whether the attempt is stopped under this version of Landlock.
    pub fn stops(self, landlock: i64) -> bool {
        match self {
            Self::Stopped => true,
            Self::StoppedFrom(version) => landlock >= version,
            Self::Open => false,
        }
    }
}

/// The folders and sockets that attempts use: two folders, of which only one is writable, and a
/// host that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Testbed {
    /// Parent of both folders.
    pub folder: PathBuf,
    /// The TCP port on which the host listens.
    pub tcp: u16,
    /// The process that plays the server.
    pub host: u32,
    /// Start time of that process, in ticks since boot. Distinguishes it from another process with
    /// the same id.
    pub host_began: u64,
}

const REPORT: &str = "report";

impl Testbed {
    /// Returns the writable folder.
    pub fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    /// Returns the folder that must be neither read nor written.
    pub fn outside(&self) -> PathBuf {
        self.folder.join("outside")
    }

    /// Returns the path of a unix socket on which the host listens. The sandbox can see the path,
    /// so not only a missing path blocks it.
    pub fn socket(&self) -> PathBuf {
        self.workspace().join("socket")
    }

    /// Returns the abstract name of another unix socket of the host.
    pub fn abstract_socket(&self) -> String {
        format!("raddle-sandbox-{}-{}", self.host, self.tcp)
    }

    /// Encodes the testbed as arguments for the sandboxed process.
    pub fn args(&self) -> Vec<OsString> {
        vec![
            self.folder.clone().into(),
            self.tcp.to_string().into(),
            self.host.to_string().into(),
            self.host_began.to_string().into(),
        ]
    }

    /// Parses the arguments that [`Self::args`] returns.
    pub fn parse(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        fn number<T: std::str::FromStr>(arg: Option<OsString>) -> Option<T> {
            arg?.to_str()?.parse().ok()
        }
        Some(Self {
            folder: args.next()?.into(),
            tcp: number(args.next())?,
            host: number(args.next())?,
            host_began: number(args.next())?,
        })
    }

    /// Fails unless the host's process is visible under its own id.
    pub fn see_host(&self) -> io::Result<()> {
        if began(self.host)? == self.host_began {
            Ok(())
        } else {
            Err(io::Error::other("the number belongs to another process"))
        }
    }
}

/// Returns the start time of a process, in ticks since boot.
pub fn began(process: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name that may hold any character, spaces and brackets included.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    words
        .split_whitespace()
        .nth(19)
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| io::Error::other("no time in its status"))
}

/// Makes every attempt of [`CORE`] and writes the report into the workspace, the only writable
/// folder.
pub(super) fn answer(args: &mut impl Iterator<Item = OsString>) -> ExitCode {
    let Some(testbed) = Testbed::parse(args) else {
        return ExitCode::FAILURE;
    };
    let mut report = String::new();
    for attempt in CORE {
        report.push_str(&match (attempt.run)(&testbed) {
            Ok(()) => format!("open {}\n", attempt.name),
            Err(error) => format!("held {} {}\n", attempt.name, one_line(&error)),
        });
    }
    match fs::write(testbed.workspace().join(REPORT), report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn one_line(error: &io::Error) -> String {
    error.to_string().replace('\n', " ")
}

/// Reads the report: each attempt, and the reason if it was stopped.
pub(super) fn report(workspace: &Path) -> io::Result<Vec<(&'static Attempt, Option<String>)>> {
    let text = fs::read_to_string(workspace.join(REPORT))?;
    let odd = || io::Error::other("the report of the attempts is incomplete");
    let mut lines = text.lines();
    CORE.iter()
        .map(|attempt| {
            let mut words = lines.next().ok_or_else(odd)?.splitn(3, ' ');
            let verdict = words.next();
            if words.next() != Some(attempt.name) {
                return Err(odd());
            }
            match verdict {
                Some("open") => Ok((attempt, None)),
                Some("held") => Ok((attempt, Some(words.next().unwrap_or_default().to_owned()))),
                _ => Err(odd()),
            }
        })
        .collect()
}
