//! One bit changes, and what is served then.

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

use super::ground_truth::{GroundTruth, Views};
use crate::ledger::listed;
use crate::live::fold;
use crate::rng::Rng;

/// Where the bit is.
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

/// A bit that changes.
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
    /// Any bit of a file.
    pub fn of(home: &Path, file: DamagedFile, rng: &mut Rng) -> Result<Self> {
        let length = fs::metadata(home.join(file.name()))?.len();
        Ok(Self {
            file,
            at: rng.below(length),
            bit: u8::try_from(rng.below(8))?,
        })
    }

    /// Changes it.
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

/// What came of it, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageOutcome {
    /// Everything is served as it was.
    Harmless,
    /// One thread says that it is damaged, or some of its pages do; the others are as they were.
    OneQuarantined,
    /// The same of a thread and forks of it: what was hit belongs to all of them.
    KinQuarantined,
    /// The same of threads that have only a page of the file in common, or the way to it.
    SomeQuarantined,
    /// A list does not show a thread that is there, and whoever verifies is told.
    Unlisted,
    /// The end of the log is gone, as after a loss of power before it was synced. Every thread is as it
    /// was at some moment before.
    CutBack,
    /// Text of an item that was still open is gone: what nobody can notice, and is named as such.
    OpenText,
    /// The journal does not open, and says why; threads that are sound can be exported.
    Refused,
    /// A thread that can be read cannot be exported.
    NotSalvaged,
    /// A thread is gone without a word.
    Vanished,
    /// A list or page shows what the records do not say.
    FalseView,
    /// An export holds what was never stored.
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
            Self::KinQuarantined => "a thread and forks of it say they are damaged",
            Self::SomeQuarantined => "threads on one page say they are damaged",
            Self::Unlisted => "a list lacks a thread, which is noticed",
            Self::CutBack => "the end of the log is gone",
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

/// An outcome, in words.
pub struct DamageReport {
    pub outcome: DamageOutcome,
    pub how: String,
    /// What became of the threads in exports.
    pub exports: ExportCounts,
}

/// How many threads an export holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportCounts {
    pub whole: u64,
    /// Up to where they are damaged.
    pub partly: u64,
    pub not: u64,
}

/// What the journal gave for true.
type ServedRecords = BTreeMap<ThreadId, Vec<Record>>;

impl DamageReport {
    fn worse(&mut self, outcome: DamageOutcome, how: impl Into<String>) {
        if outcome > self.outcome {
            self.outcome = outcome;
            self.how = how.into();
        }
    }
}

/// What one thread came to.
enum ThreadDamage {
    Whole,
    Damaged,
    Earlier,
    OpenText,
}

/// Looks at everything that a damaged home serves.
pub async fn look(home: &Path, truth: &GroundTruth, file: DamagedFile) -> Result<DamageReport> {
    let mut seen = DamageReport {
        outcome: DamageOutcome::Harmless,
        how: String::new(),
        exports: ExportCounts::default(),
    };
    let folder = home.to_owned();
    let mut damaged = Vec::new();
    let mut served = ServedRecords::new();
    match LocalJournal::open(&Options { folder }) {
        Err(error) => seen.worse(DamageOutcome::Refused, error.to_string()),
        Ok(store) => {
            let lists = listed(&store).await;
            for id in truth.threads.keys() {
                let summary = match &lists {
                    Ok(lists) => Some(lists.get(id)),
                    Err(_) => None,
                };
                let found = thread(&store, home, *id, truth, summary, &mut served, &mut seen);
                match found.await? {
                    ThreadDamage::Whole => {}
                    ThreadDamage::Damaged => damaged.push(*id),
                    ThreadDamage::Earlier | ThreadDamage::OpenText if file == DamagedFile::Log => {
                        seen.worse(DamageOutcome::CutBack, String::new());
                    }
                    ThreadDamage::OpenText => {
                        seen.worse(DamageOutcome::OpenText, format!("thread {id}"))
                    }
                    ThreadDamage::Earlier => {
                        seen.worse(DamageOutcome::Vanished, format!("records of {id} are gone"));
                    }
                }
            }
            if let Ok(lists) = &lists
                && let Some(foreign) = lists.keys().find(|id| !truth.threads.contains_key(id))
            {
                seen.worse(DamageOutcome::FalseView, format!("{foreign} is listed"));
            }
        }
    }
    let families: BTreeSet<ThreadId> = damaged.iter().map(|id| truth.family(*id)).collect();
    match (damaged.len(), families.len()) {
        (0, _) => {}
        (1, _) => seen.worse(DamageOutcome::OneQuarantined, String::new()),
        (_, 1) => seen.worse(DamageOutcome::KinQuarantined, String::new()),
        _ => seen.worse(DamageOutcome::SomeQuarantined, String::new()),
    }
    salvage(home, truth, &served, &mut seen)?;
    Ok(seen)
}

async fn thread(
    store: &LocalJournal,
    home: &Path,
    id: ThreadId,
    truth: &GroundTruth,
    summary: Option<Option<&raddle_core::ports::Summary>>,
    served: &mut ServedRecords,
    seen: &mut DamageReport,
) -> Result<ThreadDamage> {
    let records = match all(store, id).await {
        Ok(records) => records,
        Err(ReadError::NotFound) => Vec::new(),
        Err(_) => return Ok(ThreadDamage::Damaged),
    };
    let stored = truth.threads.get(&id).map_or(&[][..], Vec::as_slice);
    if !is_earlier(&records, stored) {
        seen.worse(DamageOutcome::FalseRecord, format!("thread {id}"));
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
                let wanted = truth.views(id, &records).await?;
                let is_unlisted = summary.is_none() && wanted.unlisted() == views;
                if is_unlisted && views != wanted && is_noticed(home, id)? {
                    seen.worse(DamageOutcome::Unlisted, format!("thread {id}"));
                } else if views != wanted {
                    seen.worse(DamageOutcome::FalseView, format!("thread {id}"));
                }
            }
        }
        let mut whole = raddle_core::Thread::new();
        records.iter().for_each(|record| whole.apply(record));
        match fold(store, id, None).await {
            Ok(folded) if folded != whole => {
                seen.worse(DamageOutcome::FalseView, format!("the base of thread {id}"));
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

/// Whether whoever verifies is told that the file, or the thread, is not as it was.
fn is_noticed(home: &Path, id: ThreadId) -> Result<bool> {
    let Some(archive) = Archive::open(home)? else {
        return Ok(false);
    };
    Ok(!archive.check_file()?.is_empty() || !archive.verify(id)?.damage.is_empty())
}

/// Whether records are those of an earlier moment: pieces of items that were whole later are still there.
fn is_earlier(records: &[Record], truth: &[Record]) -> bool {
    let last = records.last().map(|it| it.seq);
    let events = |records: &[Record]| {
        let events = records.iter().filter(|it| Some(it.seq) <= last);
        let events = events.filter(|it| matches!(it.body, raddle_core::RecordBody::Event(_)));
        events.cloned().collect::<Vec<_>>()
    };
    events(records) == events(truth)
}

/// Whether nothing is gone but pieces of items that were open.
fn lacks_open_text(records: &[Record], truth: &[Record]) -> bool {
    let (kept, gone): (Vec<&Record>, Vec<&Record>) =
        truth.iter().partition(|it| records.contains(it));
    let is_piece = |record: &&Record| matches!(record.body, raddle_core::RecordBody::Delta(_));
    kept.into_iter().eq(records) && !gone.is_empty() && gone.iter().all(is_piece)
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

/// What can be exported is true, and what can be read can be exported.
fn salvage(
    home: &Path,
    truth: &GroundTruth,
    served: &ServedRecords,
    seen: &mut DamageReport,
) -> Result<()> {
    let mut salvage = Salvage::new(home);
    for (id, records) in &truth.threads {
        let exported = match export(&mut salvage, *id)? {
            Ok(exported) => exported,
            Err(error) if served.contains_key(id) => {
                seen.worse(DamageOutcome::NotSalvaged, format!("thread {id}: {error}"));
                continue;
            }
            Err(_) => Vec::new(),
        };
        if !is_earlier(&exported, records) {
            seen.worse(DamageOutcome::FalseExport, format!("thread {id}"));
        }
        let served = served.get(id);
        if served.is_some_and(|served| *served != exported) {
            let how = format!("of thread {id} only {} records", exported.len());
            seen.worse(DamageOutcome::NotSalvaged, how);
        }
        match exported.len() {
            length if length == records.len() => seen.exports.whole += 1,
            0 => seen.exports.not += 1,
            _ => seen.exports.partly += 1,
        }
    }
    Ok(())
}

/// The records of a thread that an export holds.
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
