//! One flipped bit, and what is served afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Result;
use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Record, ThreadId};
use raddle_store::{
    Archive, BundleEntry, BundleReader, ExportError, Extent, LocalJournal, Options, Salvage,
};
use support::Rng;

use super::ground_truth::{GroundTruth, Views};
use crate::ledger::listed;
use crate::live::fold;

/// File with the flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamagedFile {
    Database,
    Log,
}

impl DamagedFile {
    fn name(self) -> &'static str {
        match self {
            Self::Database => "journal.sqlite",
            Self::Log => "journal.sqlite-wal",
        }
    }
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Database => "database",
            Self::Log => "log",
        })
    }
}

/// A bit to flip.
#[derive(Clone, Copy, Debug)]
pub struct Flip {
    file: DamagedFile,
    at: u64,
    bit: u8,
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, bit } = self;
        write!(f, "bit {bit} of byte {at} of the {file}")
    }
}

impl Flip {
    /// Chooses a random bit of a file.
    pub fn of(home: &Path, file: DamagedFile, rng: &mut Rng) -> Result<Self> {
        let length = fs::metadata(home.join(file.name()))?.len();
        Ok(Self {
            file,
            at: rng.below(length),
            bit: u8::try_from(rng.below(8))?,
        })
    }

    /// Flips the bit.
    pub fn make(&self, home: &Path) -> Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .open(home.join(self.file.name()))?;
        let mut byte = [0];
        file.seek(SeekFrom::Start(self.at))?;
        file.read_exact(&mut byte)?;
        byte[0] ^= 1 << self.bit;
        file.seek(SeekFrom::Start(self.at))?;
        file.write_all(&byte)?;
        Ok(())
    }
}

/// Outcome of a flip, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageOutcome {
    /// Everything is served as before.
    Harmless,
    /// One thread or some of its pages report damage; the others are unchanged.
    OneQuarantined,
    /// A thread and its forks report damage, because they share the damaged data.
    FamilyQuarantined,
    /// Unrelated threads report damage, because they share a page of the file or the path to it.
    SomeQuarantined,
    /// A list lacks an existing thread, and a verification reports that.
    Unlisted,
    /// The end of the WAL is lost, as after a loss of power before a sync. Every thread is as it
    /// was at some earlier moment.
    LogTruncated,
    /// Text of an open item is lost. This cannot be detected, which is a documented limit.
    OpenText,
    /// The journal does not open, and reports why; intact threads can be exported.
    Refused,
    /// A thread that can be read cannot be exported.
    NotSalvaged,
    /// A thread is lost without an error.
    Vanished,
    /// A list or page contradicts the records.
    FalseView,
    /// An export contains data that was never stored.
    FalseExport,
    /// A record is served that was never stored.
    FalseRecord,
}

impl DamageOutcome {
    /// Whether this must not happen.
    pub fn is_violation(self) -> bool {
        self >= Self::NotSalvaged
    }
}

impl fmt::Display for DamageOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Harmless => "all is served as it was",
            Self::OneQuarantined => "one thread says it is damaged",
            Self::FamilyQuarantined => "a thread and forks of it say they are damaged",
            Self::SomeQuarantined => "threads on one page say they are damaged",
            Self::Unlisted => "a list lacks a thread, which is noticed",
            Self::LogTruncated => "the end of the log is gone",
            Self::OpenText => "text of an open item is gone",
            Self::Refused => "it does not open; sound threads are exported",
            Self::NotSalvaged => "A SOUND THREAD IS NOT EXPORTED",
            Self::Vanished => "A THREAD IS GONE WITHOUT A WORD",
            Self::FalseView => "A LIST OR PAGE SHOWS WHAT IS NOT SO",
            Self::FalseExport => "AN EXPORT HOLDS WHAT IS NOT SO",
            Self::FalseRecord => "A RECORD IS SERVED THAT NEVER WAS",
        })
    }
}

/// An outcome, with a description.
pub struct DamageReport {
    pub outcome: DamageOutcome,
    pub how: String,
    /// Results of exporting the threads.
    pub exports: ExportCounts,
}

/// Numbers of threads by how much an export holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportCounts {
    pub whole: u64,
    /// Threads exported up to their damage.
    pub partly: u64,
    pub not: u64,
}

/// Records that the journal served as valid.
type ServedRecords = BTreeMap<ThreadId, Vec<Record>>;

impl DamageReport {
    fn worsen(&mut self, outcome: DamageOutcome, how: impl Into<String>) {
        if outcome > self.outcome {
            self.outcome = outcome;
            self.how = how.into();
        }
    }
}

/// Outcome for one thread.
enum ThreadDamage {
    Whole,
    Damaged,
    Earlier,
    OpenText,
}

/// Inspects everything that a damaged home serves.
pub async fn inspect(home: &Path, truth: &GroundTruth, file: DamagedFile) -> Result<DamageReport> {
    let mut report = DamageReport {
        outcome: DamageOutcome::Harmless,
        how: String::new(),
        exports: ExportCounts::default(),
    };
    let folder = home.to_owned();
    let mut damaged = Vec::new();
    let mut served = ServedRecords::new();
    match LocalJournal::open(&Options { folder }) {
        Err(error) => report.worsen(DamageOutcome::Refused, error.to_string()),
        Ok(store) => {
            let lists = listed(&store).await;
            for id in truth.threads.keys() {
                let summary = match &lists {
                    Ok(lists) => Some(lists.get(id)),
                    Err(_) => None,
                };
                let outcome = thread(&store, home, *id, truth, summary, &mut served, &mut report);
                match outcome.await? {
                    ThreadDamage::Whole => {}
                    ThreadDamage::Damaged => damaged.push(*id),
                    ThreadDamage::Earlier | ThreadDamage::OpenText if file == DamagedFile::Log => {
                        report.worsen(DamageOutcome::LogTruncated, String::new());
                    }
                    ThreadDamage::OpenText => {
                        report.worsen(DamageOutcome::OpenText, format!("thread {id}"))
                    }
                    ThreadDamage::Earlier => {
                        report.worsen(DamageOutcome::Vanished, format!("records of {id} are gone"));
                    }
                }
            }
            if let Ok(lists) = &lists
                && let Some(foreign) = lists.keys().find(|id| !truth.threads.contains_key(id))
            {
                report.worsen(DamageOutcome::FalseView, format!("{foreign} is listed"));
            }
        }
    }
    let families: BTreeSet<ThreadId> = damaged.iter().map(|id| truth.family(*id)).collect();
    match (damaged.len(), families.len()) {
        (0, _) => {}
        (1, _) => report.worsen(DamageOutcome::OneQuarantined, String::new()),
        (_, 1) => report.worsen(DamageOutcome::FamilyQuarantined, String::new()),
        _ => report.worsen(DamageOutcome::SomeQuarantined, String::new()),
    }
    salvage(home, truth, &served, &mut report)?;
    Ok(report)
}

async fn thread(
    store: &LocalJournal,
    home: &Path,
    id: ThreadId,
    truth: &GroundTruth,
    summary: Option<Option<&raddle_core::ports::Summary>>,
    served: &mut ServedRecords,
    report: &mut DamageReport,
) -> Result<ThreadDamage> {
    let records = match all(store, id).await {
        Ok(records) => records,
        Err(ReadError::NotFound) => Vec::new(),
        Err(_) => return Ok(ThreadDamage::Damaged),
    };
    let stored = truth.threads.get(&id).map_or(&[][..], Vec::as_slice);
    if !is_earlier(&records, stored) {
        report.worsen(DamageOutcome::FalseRecord, format!("thread {id}"));
        return Ok(ThreadDamage::Whole);
    }
    if !records.is_empty() {
        served.insert(id, records.clone());
        let Some(summary) = summary else {
            return Ok(ThreadDamage::Damaged);
        };
        match Views::of(store, id, summary).await {
            Err(_) => return Ok(ThreadDamage::Damaged),
            Ok(views) => {
                let expected = truth.views(id, &records).await?;
                let is_unlisted = summary.is_none() && expected.unlisted() == views;
                if is_unlisted && views != expected && is_noticed(home, id)? {
                    report.worsen(DamageOutcome::Unlisted, format!("thread {id}"));
                } else if views != expected {
                    report.worsen(DamageOutcome::FalseView, format!("thread {id}"));
                }
            }
        }
        let mut whole = raddle_core::Thread::new();
        records.iter().for_each(|record| whole.apply(record));
        match fold(store, id, None).await {
            Ok(folded) if folded != whole => {
                report.worsen(DamageOutcome::FalseView, format!("the base of thread {id}"));
            }
            Err(_) => return Ok(ThreadDamage::Damaged),
            Ok(_) => {}
        }
    }
    Ok(if records == stored {
        ThreadDamage::Whole
    } else if lacks_open_text(&records, stored) {
        ThreadDamage::OpenText
    } else {
        ThreadDamage::Earlier
    })
}

/// Whether a verification reports damage to the file or the thread.
fn is_noticed(home: &Path, id: ThreadId) -> Result<bool> {
    let Some(archive) = Archive::open(home)? else {
        return Ok(false);
    };
    Ok(!archive.check_file()?.is_empty() || !archive.verify(id)?.damage.is_empty())
}

/// Whether records are those of an earlier moment, at which deltas of later completed items still
/// exist.
fn is_earlier(records: &[Record], truth: &[Record]) -> bool {
    let last = records.last().map(|it| it.seq);
    let events = |records: &[Record]| {
        let events = records.iter().filter(|it| Some(it.seq) <= last);
        let events = events.filter(|it| matches!(it.body, raddle_core::RecordBody::Event(_)));
        events.cloned().collect::<Vec<_>>()
    };
    events(records) == events(truth)
}

/// Whether only deltas of open items are missing.
fn lacks_open_text(records: &[Record], truth: &[Record]) -> bool {
    let (present, missing): (Vec<&Record>, Vec<&Record>) =
        truth.iter().partition(|it| records.contains(it));
    let is_piece = |record: &&Record| matches!(record.body, raddle_core::RecordBody::Delta(_));
    present.into_iter().eq(records) && !missing.is_empty() && missing.iter().all(is_piece)
}

async fn all(store: &LocalJournal, id: ThreadId) -> Result<Vec<Record>, ReadError> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let after = records.last().map_or(raddle_core::Seq::ZERO, |it| it.seq);
        let page = store.read(id, after, 1 << 20).await?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
}

/// Checks that exports hold only stored records, and that every readable thread can be exported.
fn salvage(
    home: &Path,
    truth: &GroundTruth,
    served: &ServedRecords,
    report: &mut DamageReport,
) -> Result<()> {
    let mut salvage = Salvage::new(home);
    for (id, records) in &truth.threads {
        let exported = match export(&mut salvage, *id)? {
            Ok(exported) => exported,
            Err(error) if served.contains_key(id) => {
                report.worsen(DamageOutcome::NotSalvaged, format!("thread {id}: {error}"));
                continue;
            }
            Err(_) => Vec::new(),
        };
        if !is_earlier(&exported, records) {
            report.worsen(DamageOutcome::FalseExport, format!("thread {id}"));
        }
        let served = served.get(id);
        if served.is_some_and(|served| *served != exported) {
            let how = format!("of thread {id} only {} records", exported.len());
            report.worsen(DamageOutcome::NotSalvaged, how);
        }
        match exported.len() {
            length if length == records.len() => report.exports.whole += 1,
            0 => report.exports.not += 1,
            _ => report.exports.partly += 1,
        }
    }
    Ok(())
}

/// Returns the records of a thread in an export.
fn export(salvage: &mut Salvage, id: ThreadId) -> Result<Result<Vec<Record>, ExportError>> {
    let mut file = Vec::new();
    if let Err(error) = salvage.export(id, &mut file, Extent::Sound) {
        return Ok(Err(error));
    }
    let mut reader = BundleReader::open(file.as_slice())?;
    let mut exported = Vec::new();
    while let Some(entry) = reader.next()? {
        if let BundleEntry::Record(record) = entry {
            exported.push(*record);
        }
    }
    Ok(Ok(exported))
}

#[cfg(test)]
mod tests;
