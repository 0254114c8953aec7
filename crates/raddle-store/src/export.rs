//! Exports a thread to a self-contained file.

use std::io::{self, Write};

use data_encoding::HEXLOWER;
use raddle_core::ports::ReadError;
use raddle_core::{Record, RecordBody, Seq, ThreadId};

use super::archive::Archive;
use super::files::BlobFiles;
use super::{error, head, read};
use crate::blob;
use crate::bundle::{BundleEnd, BundleWriter};

/// Bytes of the journal that are read at a time.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// Whether an export may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Export everything, or fail.
    Whole,
    /// Export the records before the first damaged one. Records that refer to lost blobs are
    /// included.
    Sound,
}

/// Result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    /// Seal of the file.
    pub end: BundleEnd,
    /// Descriptions of data that is or may be missing from the file; empty if it is complete.
    pub lacks: Vec<String>,
}

/// Reason for a failed export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The thread cannot be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A blob that a record refers to is missing or damaged.
    #[error("record {at} refers to the blob {hash}, which cannot be read: {why}")]
    Blob {
        /// Number of the record.
        at: Seq,
        /// Hash of the blob.
        hash: String,
        /// Cause of the failure.
        why: String,
    },
    /// The file cannot be written.
    #[error("the file cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// An export in progress.
pub(super) struct Export<'a> {
    files: BlobFiles,
    writer: BundleWriter<&'a mut dyn Write>,
    extent: Extent,
    /// Last record that was written.
    pub(super) last: Seq,
    pub(super) lacks: Vec<String>,
}

/// End of a thread, as stored in the journal.
pub(super) struct ThreadEnd {
    pub(super) head: Seq,
    /// End of its hash chain, in hex.
    pub(super) chain: String,
}

impl<'a> Export<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        files: BlobFiles,
        thread: ThreadId,
        end: ThreadEnd,
        extent: Extent,
    ) -> io::Result<Self> {
        Ok(Self {
            files,
            writer: BundleWriter::new(out, thread, end.head, end.chain)?,
            extent,
            last: Seq::ZERO,
            lacks: Vec::new(),
        })
    }

    /// Writes a record, preceded by the blobs that it is the first to refer to.
    pub(super) fn record(&mut self, record: Record) -> Result<(), ExportError> {
        if let RecordBody::Event(event) = &record.body {
            for blob_ref in blob::named(event) {
                self.blob(&blob_ref.hash, record.seq)?;
            }
        }
        self.last = record.seq;
        self.writer.record(record)?;
        Ok(())
    }

    fn blob(&mut self, name: &str, at: Seq) -> Result<(), ExportError> {
        let Some(hash) = blob::parse(name).filter(|hash| !self.writer.has(hash)) else {
            return Ok(());
        };
        match self.files.read(&hash) {
            Ok(bytes) => self.writer.blob(hash, &bytes)?,
            Err(error) if self.extent == Extent::Sound => {
                let why = error.to_string();
                let lack = format!("the blob {name} that record {at} names: {why}");
                self.lacks.push(lack);
                self.writer.lost(hash, why)?;
            }
            Err(error) => {
                return Err(ExportError::Blob {
                    at,
                    hash: name.to_owned(),
                    why: error.to_string(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<ExportSummary, ExportError> {
        Ok(ExportSummary {
            end: self.writer.finish()?,
            lacks: self.lacks,
        })
    }
}

impl Archive {
    /// Returns the end of a thread.
    pub(super) fn end(&self, thread: ThreadId) -> Result<ThreadEnd, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        let chain = head::end_of_chain(&transaction, &row).map_err(error::open)?;
        Ok(ThreadEnd {
            head: head::of_row(&transaction, thread, &row).map_err(error::open)?,
            chain: chain.map_or_else(String::new, |link| HEXLOWER.encode(&link)),
        })
    }

    /// Writes a thread's records up to the first one that SQLite cannot return. Returns the error
    /// that stopped it, if any.
    pub(super) fn write_records(
        &self,
        thread: ThreadId,
        export: &mut Export<'_>,
    ) -> Result<Option<ReadError>, ExportError> {
        // One transaction, so that the file is a consistent snapshot of the thread.
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        let mut bytes_max = PAGE_BYTES;
        loop {
            let (files, last) = (&self.files, export.last);
            let page = match read::records(&transaction, files, thread, &row, last, bytes_max) {
                Ok(page) if page.is_empty() => return Ok(None),
                Ok(page) => page,
                // A page that fails is read again record by record, up to the unreadable one.
                Err(ReadError::Corrupt { .. }) if bytes_max > 0 => {
                    bytes_max = 0;
                    continue;
                }
                Err(error @ ReadError::Corrupt { .. }) => return Ok(Some(error)),
                Err(error) => return Err(error.into()),
            };
            for record in page {
                export.record(record)?;
            }
        }
    }
}
