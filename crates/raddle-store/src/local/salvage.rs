//! Salvages threads from a journal, also from a damaged one.
//!
//! SQLite reads a thread if it can. If it cannot, the pages of the file are searched without it.
//! Either way, a record is exported only if its hash follows from the previous one.

mod page;
mod raw_pages;
mod raw_scan;
mod rows;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use raddle_core::ports::ReadError;
use raddle_core::{Seq, ThreadId};

use super::archive::{Archive, id_range};
use super::export::write_record;
use super::files::BlobFiles;
use super::read;
use crate::export::{Export, ExportError, ExportSummary, Extent, ThreadEnd};
use raw_scan::RawScan;

/// A journal whose threads are exported to files.
#[derive(Debug)]
pub struct Salvage {
    folder: PathBuf,
    archive: Result<Option<Archive>, ReadError>,
    /// Scan of the raw file. It takes as long as reading the file, so it runs only when needed.
    raw_scan: Option<RawScan>,
}

/// Threads that can be exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Threads of which at least a part was found.
    pub threads: Vec<ThreadId>,
    /// Descriptions of the damage to the file; empty if it is intact.
    pub problems: Vec<String>,
}

impl Salvage {
    /// Opens the journal in a folder. Writes nothing there.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            archive: Archive::open(folder),
            raw_scan: None,
        }
    }

    /// Returns every thread, also those that SQLite no longer finds. Reads the whole file to check
    /// it.
    pub fn threads(&mut self) -> Result<Inventory, ReadError> {
        let mut inventory = Inventory::default();
        match &self.archive {
            Ok(None) => return Ok(inventory),
            Ok(Some(archive)) => {
                inventory.problems = archive.check_file()?;
                match archive.threads() {
                    Ok(threads) => inventory.threads = threads,
                    Err(error) => inventory.problems.push(error.to_string()),
                }
            }
            Err(error @ ReadError::Corrupt { .. }) => inventory.problems.push(error.to_string()),
            Err(error) => return Err(error.clone()),
        }
        if !inventory.problems.is_empty() {
            let known: BTreeSet<ThreadId> = inventory.threads.iter().copied().collect();
            let scanned = self.raw_scan()?.threads().into_iter();
            inventory
                .threads
                .extend(scanned.filter(|it| !known.contains(it)));
        }
        Ok(inventory)
    }

    /// Returns the threads whose id begins with a prefix; two or more if it is ambiguous.
    pub fn find(&mut self, prefix: &str) -> Result<Vec<ThreadId>, ReadError> {
        let result = match &self.archive {
            Ok(None) => Ok(Vec::new()),
            Ok(Some(archive)) => archive.find(prefix),
            Err(error) => Err(error.clone()),
        };
        match result {
            Err(ReadError::Corrupt { .. }) => {
                let Some((low, high)) = id_range(prefix) else {
                    return Ok(Vec::new());
                };
                let mut threads = self.raw_scan()?.threads();
                threads.retain(|it| (low..=high).contains(it.as_uuid().as_bytes()));
                Ok(threads)
            }
            result => result,
        }
    }

    /// Exports a thread to a file: its records, and the blobs that they refer to.
    pub fn export(
        &mut self,
        thread: ThreadId,
        out: &mut dyn Write,
        extent: Extent,
    ) -> Result<ExportSummary, ExportError> {
        let end = match &self.archive {
            Ok(Some(archive)) => archive.end(thread),
            Ok(None) => Err(ReadError::NotFound),
            Err(error) => Err(error.clone()),
        };
        let (mut end, mut damage) = match end {
            Ok(end) => (end, None),
            // In a damaged file, a thread that SQLite does not find may still exist.
            Err(ReadError::NotFound) if self.raw_scan.is_none() => {
                return Err(ReadError::NotFound.into());
            }
            Err(error @ (ReadError::NotFound | ReadError::Corrupt { .. })) => {
                let end = ThreadEnd {
                    head: self.raw_scan()?.head(thread),
                    chain: String::new(),
                };
                (end, Some(error))
            }
            Err(error) => return Err(error.into()),
        };
        // If the WAL is truncated, SQLite ends a thread too early.
        let further = self
            .raw_scan
            .as_ref()
            .map_or(Seq::ZERO, |it| it.head(thread));
        let truncated = further > end.head;
        end.head = end.head.max(further);
        let mut export = Export::new(out, thread, end, extent)?;
        if let (None, Ok(Some(archive))) = (&damage, &self.archive) {
            damage = archive.write_records(thread, &mut export)?;
            if damage.is_none() && truncated {
                let what = format!("the journal should go on to record {further}");
                damage = Some(read::corrupt(export.last.next(), what));
            }
        }
        if let Some(damage) = damage {
            self.scan_rest(thread, damage, &mut export, extent)?;
        }
        export.finish()
    }

    /// Continues an export with the raw scan where SQLite failed.
    fn scan_rest(
        &mut self,
        thread: ThreadId,
        damage: ReadError,
        export: &mut Export<&mut dyn Write>,
        extent: Extent,
    ) -> Result<(), ExportError> {
        let after = export.last;
        let files = BlobFiles::new(&self.folder);
        let scanned = self.raw_scan()?.walk(thread, after, &mut |record| {
            write_record(export, &files, record)
        })?;
        let damage = match scanned.damage {
            None if scanned.end_known => return Ok(()),
            None => {
                let last = export.last;
                let lack = format!(
                    "records after {last}, if there were any: the end of the thread is unknown"
                );
                export.lacks.push(lack);
                return Ok(());
            }
            Some(ReadError::NotFound) => damage,
            Some(error) => error,
        };
        if extent == Extent::Whole || export.last == Seq::ZERO {
            return Err(damage.into());
        }
        export.end_at(&damage);
        Ok(())
    }

    fn raw_scan(&mut self) -> Result<&RawScan, ReadError> {
        if self.raw_scan.is_none() {
            let scan = RawScan::search(&self.folder);
            self.raw_scan = Some(scan.map_err(|error| ReadError::Unavailable(error.to_string()))?);
        }
        self.raw_scan.as_ref().ok_or(ReadError::NotFound)
    }
}
