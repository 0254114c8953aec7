//! The file of results: which seeds were played at full size, by which version, and what they broke.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// First lines of the file.
const HEADER: &str = "\
# Seeds that `cargo xtask prove simulator` played: FROM..TO | VERSION | BROKEN PROMISES. A run that was
# interrupted goes on where its line ends.
";

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedRun {
    from: u64,
    to: u64,
    version: String,
    broken: u64,
}

/// Results of runs, in a file.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    runs: Vec<RecordedRun>,
}

impl ResultsFile {
    /// Reads the file, which need not exist.
    pub fn open(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let runs = lines.map(|line| {
            RecordedRun::parse(line).ok_or_else(|| {
                let what = format!("not `FROM..TO | VERSION | BROKEN PROMISES`: {line}");
                io::Error::new(ErrorKind::InvalidData, what)
            })
        });
        Ok(Self {
            path: path.to_owned(),
            runs: runs.collect::<io::Result<_>>()?,
        })
    }

    /// Returns the seeds to play next: up to the next multiple of this number.
    pub fn next(&self, seeds: u64) -> std::ops::Range<u64> {
        let from = self.runs.iter().map(|run| run.to).max().unwrap_or(0);
        let seeds = seeds.max(1);
        from..(from / seeds + 1) * seeds
    }

    /// Adds seeds that were played, and writes the file.
    pub fn add(&mut self, from: u64, to: u64, version: &str, broken: u64) -> io::Result<()> {
        let run = RecordedRun {
            from,
            to,
            version: version.to_owned(),
            broken,
        };
        let continues = |last: &&mut RecordedRun| last.to == from && last.version == version;
        match self.runs.last_mut().filter(continues) {
            Some(last) => {
                last.to = to;
                last.broken += broken;
            }
            None => self.runs.push(run),
        }
        let mut text = HEADER.to_owned();
        for run in &self.runs {
            let RecordedRun {
                from,
                to,
                version,
                broken,
            } = run;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{from}..{to} | {version} | {broken}");
        }
        // A run that is ended meanwhile leaves the former file.
        let new = self.path.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, &self.path)
    }

    /// Number of all seeds that were played, and of the promises that they broke.
    pub fn sum(&self) -> (u64, u64) {
        let seeds = self.runs.iter().map(|run| run.to - run.from).sum();
        (seeds, self.runs.iter().map(|run| run.broken).sum())
    }
}

impl RecordedRun {
    fn parse(line: &str) -> Option<Self> {
        let mut columns = line.split('|').map(str::trim);
        let (from, to) = columns.next()?.split_once("..")?;
        let run = Self {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            version: columns.next()?.to_owned(),
            broken: columns.next()?.parse().ok()?,
        };
        (run.from <= run.to).then_some(run)
    }
}
