//! Writing a thread to a file that stands for itself.

use std::io::{self, Write};

use raddle_core::ports::ReadError;
use raddle_core::{Record, RecordBody, Seq, ThreadId};

use super::archive::Archive;
use super::files::BlobFiles;
use super::{error, fence, read};
use crate::blob;
use crate::bundle::{BundleEnd, BundleWriter};

/// How much of a journal is read at a time.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// Whether a file may hold less than the thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything, or no file.
    Whole,
    /// Where something is damaged, what comes before it; and records although bytes that they name
    /// are lost.
    Sound,
}

/// What came of writing a thread to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    /// What the file's seal says.
    pub end: BundleEnd,
    /// What is not in the file, or may not be, in words; empty if it holds everything.
    pub lacks: Vec<String>,
}

/// Why a thread was not written to a file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The thread cannot be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Bytes that a record names are gone or damaged.
    #[error("record {at} names the blob {hash}, which cannot be read: {why}")]
    Blob {
        /// The record.
        at: Seq,
        /// The name.
        hash: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be written.
    #[error("the file cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// A file that is being written.
pub(super) struct Export<'a> {
    files: BlobFiles,
    writer: BundleWriter<&'a mut dyn Write>,
    extent: Extent,
    /// The last record that was written.
    pub(super) last: Seq,
    pub(super) lacks: Vec<String>,
}

/// Where a thread ends, as the journal has it.
pub(super) struct ThreadEnd {
    pub(super) head: Seq,
    /// The end of its hash chain, in hex.
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

    /// A record, and before it the bytes that it is the first to name.
    pub(super) fn record(&mut self, record: Record) -> Result<(), ExportError> {
        if let RecordBody::Event(event) = &record.body {
            for named in blob::named(event) {
                self.blob(&named.hash, record.seq)?;
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
    /// Where a thread ends.
    pub(super) fn end(&self, thread: ThreadId) -> Result<ThreadEnd, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        let chain = fence::end_of_chain(&transaction, &row).map_err(error::open)?;
        Ok(ThreadEnd {
            head: fence::head(&transaction, thread, &row).map_err(error::open)?,
            chain: chain.map_or_else(String::new, |link| hex(&link)),
        })
    }

    /// Writes a thread's records as far as SQLite gives them, and says why not further.
    pub(super) fn write_records(
        &self,
        thread: ThreadId,
        export: &mut Export<'_>,
    ) -> Result<Option<ReadError>, ExportError> {
        // One transaction, so that the file is the thread as it was at one moment.
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        let mut bytes_max = PAGE_BYTES;
        loop {
            let (files, last) = (&self.files, export.last);
            let page = match read::records(&transaction, files, thread, &row, last, bytes_max) {
                Ok(page) if page.is_empty() => return Ok(None),
                Ok(page) => page,
                // A page that breaks off is read record by record, up to the one that cannot be.
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

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
