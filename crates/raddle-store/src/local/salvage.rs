//! Getting threads out of a journal, also out of one that is damaged.
//!
//! Where SQLite can read a thread, it does. Where it cannot, the pages of the file are searched without
//! it. Either way a record is written out only if its hash follows from the one before it.

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
use super::export::{Export, ExportError, ExportSummary, Extent, ThreadEnd};
use super::files::BlobFiles;
use super::read;
use raw_scan::RawScan;

/// A journal from which threads are written to files.
#[derive(Debug)]
pub struct Salvage {
    folder: PathBuf,
    archive: Result<Option<Archive>, ReadError>,
    /// Searching the file takes as long as reading it, so it is done when it is needed.
    raw_scan: Option<RawScan>,
}

/// What there is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Every thread of which something was found.
    pub threads: Vec<ThreadId>,
    /// What is wrong with the file, in words; empty if it is whole.
    pub problems: Vec<String>,
}

impl Salvage {
    /// Looks at the journal in a folder. Nothing is written there.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            archive: Archive::open(folder),
            raw_scan: None,
        }
    }

    /// Every thread, also those that SQLite no longer finds. Reads the whole file to see whether it is
    /// sound.
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
            let found = self.raw_scan()?.threads().into_iter();
            inventory
                .threads
                .extend(found.filter(|it| !known.contains(it)));
        }
        Ok(inventory)
    }

    /// The threads whose id begins so; two or more if there are.
    pub fn find(&mut self, prefix: &str) -> Result<Vec<ThreadId>, ReadError> {
        let found = match &self.archive {
            Ok(None) => Ok(Vec::new()),
            Ok(Some(archive)) => archive.find(prefix),
            Err(error) => Err(error.clone()),
        };
        match found {
            Err(ReadError::Corrupt { .. }) => {
                let Some((low, high)) = id_range(prefix) else {
                    return Ok(Vec::new());
                };
                let mut threads = self.raw_scan()?.threads();
                threads.retain(|it| (low..=high).contains(it.as_uuid().as_bytes()));
                Ok(threads)
            }
            found => found,
        }
    }

    /// Writes a thread to a file: every record that there is, and all bytes that they name.
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
            // Where the file is damaged, a thread that SQLite does not find may be there all the same.
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
        // Where the log breaks off, SQLite takes a thread to end earlier than it did.
        let further = self
            .raw_scan
            .as_ref()
            .map_or(Seq::ZERO, |it| it.head(thread));
        let cut = further > end.head;
        end.head = end.head.max(further);
        let files = BlobFiles::new(&self.folder);
        let mut export = Export::new(out, files, thread, end, extent)?;
        if let (None, Ok(Some(archive))) = (&damage, &self.archive) {
            damage = archive.write_records(thread, &mut export)?;
            if damage.is_none() && cut {
                let what = format!("the journal should go on to record {further}");
                damage = Some(read::corrupt(export.last.next(), what));
            }
        }
        if let Some(damage) = damage {
            self.go_on(thread, damage, &mut export, extent)?;
        }
        export.finish()
    }

    /// Goes on with a thread where SQLite could not.
    fn go_on(
        &mut self,
        thread: ThreadId,
        damage: ReadError,
        export: &mut Export<'_>,
        extent: Extent,
    ) -> Result<(), ExportError> {
        let after = export.last;
        let walked = self
            .raw_scan()?
            .walk(thread, after, &mut |record| export.record(record))?;
        let damage = match walked.damage {
            None if walked.end_known => return Ok(()),
            None => {
                let last = export.last;
                let lack =
                    format!("what may have come after record {last}: nothing says where it ended");
                export.lacks.push(lack);
                return Ok(());
            }
            Some(ReadError::NotFound) => damage,
            Some(found) => found,
        };
        if extent == Extent::Whole || export.last == Seq::ZERO {
            return Err(damage.into());
        }
        let last = export.last;
        export
            .lacks
            .push(format!("everything after record {last}: {damage}"));
        Ok(())
    }

    fn raw_scan(&mut self) -> Result<&RawScan, ReadError> {
        if self.raw_scan.is_none() {
            let wreck = RawScan::search(&self.folder);
            self.raw_scan = Some(wreck.map_err(|error| ReadError::Unavailable(error.to_string()))?);
        }
        self.raw_scan.as_ref().ok_or(ReadError::NotFound)
    }
}
