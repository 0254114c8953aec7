//! Exports a thread of the local journal, of one snapshot.

use std::io::Write;

use data_encoding::HEXLOWER;
use raddle_core::ports::ReadError;
use raddle_core::{Record, ThreadId};

use super::archive::Archive;
use super::files::BlobFiles;
use super::{error, head, read};
use crate::blob;
use crate::export::{Export, ExportError, PAGE_BYTES, ThreadEnd};

/// Writes a record, preceded by the blobs that it is the first to refer to.
pub(super) fn write_record(
    export: &mut Export<&mut dyn Write>,
    files: &BlobFiles,
    record: Record,
) -> Result<(), ExportError> {
    for blob in export.missing(&record) {
        let hash = blob::parse(&blob.hash).unwrap_or_default();
        let bytes = files.read(&hash).map_err(|error| error.to_string());
        export.blob(&blob, record.seq, bytes)?;
    }
    export.record(record)
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
        export: &mut Export<&mut dyn Write>,
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
                write_record(export, files, record)?;
            }
        }
    }
}
