//! Exports a thread to a self-contained file.

use std::io::{self, Write};

use raddle_core::ports::ReadError;
use raddle_core::{Blob, Record, RecordBody, Seq, ThreadId};

use crate::ThreadStore;
use crate::blob;
use crate::bundle::{BundleEnd, BundleWriter};

/// Bytes of the journal that are read at a time.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

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

/// Exports a thread of any store, through its ports.
pub async fn export(
    store: &dyn ThreadStore,
    thread: ThreadId,
    out: &mut dyn Write,
    extent: Extent,
) -> Result<ExportSummary, ExportError> {
    let end = ThreadEnd {
        head: store.head(thread).await?,
        chain: String::new(),
    };
    let head = end.head;
    let mut export = Export::new(out, thread, end, extent)?;
    let mut bytes_max = PAGE_BYTES;
    // A server may append meanwhile: the file ends with the record that was the newest.
    while export.last < head {
        let page = match store.read(thread, export.last, bytes_max).await {
            // A page that fails is read again record by record, up to the unreadable one.
            Err(ReadError::Corrupt { .. }) if bytes_max > 0 => {
                bytes_max = 0;
                continue;
            }
            Err(error @ ReadError::Corrupt { .. })
                if extent == Extent::Sound && export.last > Seq::ZERO =>
            {
                export.end_at(&error);
                break;
            }
            page => page?,
        };
        if page.is_empty() {
            break;
        }
        for record in page.into_iter().filter(|it| it.seq <= head) {
            for blob in export.missing(&record) {
                let bytes = store.get(thread, blob.clone()).await;
                let bytes = bytes.map_err(|error| error.to_string());
                export.blob(&blob, record.seq, bytes)?;
            }
            export.record(record)?;
        }
    }
    export.finish()
}

/// An export in progress.
pub(crate) struct Export<W: Write> {
    writer: BundleWriter<W>,
    extent: Extent,
    /// Last record that was written.
    pub(crate) last: Seq,
    pub(crate) lacks: Vec<String>,
}

/// End of a thread, as stored in the journal.
pub(crate) struct ThreadEnd {
    pub(crate) head: Seq,
    /// End of its hash chain, in hex.
    pub(crate) chain: String,
}

impl<W: Write> Export<W> {
    pub(crate) fn new(
        out: W,
        thread: ThreadId,
        end: ThreadEnd,
        extent: Extent,
    ) -> io::Result<Self> {
        Ok(Self {
            writer: BundleWriter::new(out, thread, end.head, end.chain)?,
            extent,
            last: Seq::ZERO,
            lacks: Vec::new(),
        })
    }

    /// Returns the blobs that a record is the first to refer to. They are written before it.
    pub(crate) fn missing(&self, record: &Record) -> Vec<Blob> {
        let RecordBody::Event(event) = &record.body else {
            return Vec::new();
        };
        let named = blob::named(event).into_iter();
        let is_missing =
            |it: &&Blob| blob::parse(&it.hash).is_some_and(|hash| !self.writer.has(&hash));
        named.filter(is_missing).cloned().collect()
    }

    /// Writes a blob that the record `at` refers to, or that it cannot be read.
    pub(crate) fn blob(
        &mut self,
        blob: &Blob,
        at: Seq,
        bytes: Result<Vec<u8>, String>,
    ) -> Result<(), ExportError> {
        let Some(hash) = blob::parse(&blob.hash).filter(|hash| !self.writer.has(hash)) else {
            return Ok(());
        };
        match bytes {
            Ok(bytes) => self.writer.blob(hash, &bytes)?,
            Err(why) if self.extent == Extent::Sound => {
                let lack = format!("the blob {} that record {at} names: {why}", blob.hash);
                self.lacks.push(lack);
                self.writer.lost(hash, why)?;
            }
            Err(why) => {
                return Err(ExportError::Blob {
                    at,
                    hash: blob.hash.clone(),
                    why,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, record: Record) -> Result<(), ExportError> {
        self.last = record.seq;
        self.writer.record(record)?;
        Ok(())
    }

    /// Notes that everything after the last record is missing.
    pub(crate) fn end_at(&mut self, damage: &ReadError) {
        let last = self.last;
        self.lacks
            .push(format!("everything after record {last}: {damage}"));
    }

    pub(crate) fn finish(self) -> Result<ExportSummary, ExportError> {
        Ok(ExportSummary {
            end: self.writer.finish()?,
            lacks: self.lacks,
        })
    }
}
