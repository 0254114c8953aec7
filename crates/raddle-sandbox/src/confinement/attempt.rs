//! Attempts to break out, made inside a fence and on a [`Stage`] where nothing is lost if one succeeds.
//!
//! [`CORE`] is what a fence tests itself with on the user's machine. Many more are in `tests/sandbox-escapes`.

mod core;

pub use self::core::CORE;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something that must fail inside a fence.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// What it does, in few words with dashes.
    pub name: &'static str,
    /// What holds when it fails.
    pub shows: &'static str,
    /// Whether the second tier stops it.
    pub second_tier: SecondTier,
    /// Makes the attempt. `Ok` is a way out.
    pub run: fn(&Testbed) -> io::Result<()>,
}

/// Whether the second tier stops an attempt. All that it does not stop is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondTier {
    /// Yes.
    Stopped,
    /// With this version of Landlock, and later ones.
    StoppedFrom(i64),
    /// No, and it never will without namespaces.
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

/// Where attempts are made: two folders, of which only one may be written, and a host that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Testbed {
    /// Holds both folders.
    pub folder: PathBuf,
    /// The TCP port at which the host listens.
    pub tcp: u16,
    /// The process that stands for the server.
    pub host: u32,
    /// When that process began, in ticks since the machine did; tells it from another of its number.
    pub host_began: u64,
}

const REPORT: &str = "report";

impl Testbed {
    /// The folder that may be written.
    pub fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    /// The folder that may not even be seen.
    pub fn outside(&self) -> PathBuf {
        self.folder.join("outside")
    }

    /// A unix socket at which the host listens. It is in sight, so that not only its path keeps it away.
    pub fn socket(&self) -> PathBuf {
        self.workspace().join("socket")
    }

    /// The name without a path of another one.
    pub fn abstract_socket(&self) -> String {
        format!("raddle-fence-{}-{}", self.host, self.tcp)
    }

    /// The words that carry a stage into the fence.
    pub fn words(&self) -> Vec<OsString> {
        vec![
            self.folder.clone().into(),
            self.tcp.to_string().into(),
            self.host.to_string().into(),
            self.host_began.to_string().into(),
        ]
    }

    /// Reads them again.
    pub fn parse(words: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        fn number<T: std::str::FromStr>(word: Option<OsString>) -> Option<T> {
            word?.to_str()?.parse().ok()
        }
        Some(Self {
            folder: words.next()?.into(),
            tcp: number(words.next())?,
            host: number(words.next())?,
            host_began: number(words.next())?,
        })
    }

    /// Fails unless the host's process can be seen under its own number.
    pub fn see_host(&self) -> io::Result<()> {
        if began(self.host)? == self.host_began {
            Ok(())
        } else {
            Err(io::Error::other("the number belongs to another process"))
        }
    }
}

/// When a process began.
pub fn began(process: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second word is a name that may hold anything, spaces and brackets too.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    words
        .split_whitespace()
        .nth(19)
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| io::Error::other("no time in its status"))
}

/// Makes every attempt of [`CORE`] and reports in the workspace, because only there a file can be left.
pub(super) fn answer(words: &mut impl Iterator<Item = OsString>) -> ExitCode {
    let Some(stage) = Testbed::parse(words) else {
        return ExitCode::FAILURE;
    };
    let mut report = String::new();
    for attempt in CORE {
        report.push_str(&match (attempt.run)(&stage) {
            Ok(()) => format!("open {}\n", attempt.name),
            Err(error) => format!("held {} {}\n", attempt.name, one_line(&error)),
        });
    }
    match fs::write(stage.workspace().join(REPORT), report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn one_line(error: &io::Error) -> String {
    error.to_string().replace('\n', " ")
}

/// What was reported: the attempt, and the reason if it was stopped.
pub(super) fn report(workspace: &Path) -> io::Result<Vec<(&'static Attempt, Option<String>)>> {
    let text = fs::read_to_string(workspace.join(REPORT))?;
    let odd = || io::Error::other("the report of the attempts is not whole");
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
