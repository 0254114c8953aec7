//! Writes a file, line by line.

use std::collections::HashSet;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_core::{Record, Seq, ThreadId};
use sha2::{Digest, Sha256};

use super::{BundleEnd, BundleHeader, BundleLine, FORMAT, LINE_BYTES_MAX, VERSION};
use crate::blob::{self, Hash};

/// Writer of an exported file.
pub(crate) struct BundleWriter<W> {
    out: W,
    hash: Sha256,
    records: u64,
    blobs: HashSet<Hash>,
    lost: HashSet<Hash>,
    head: Seq,
}

impl<W: Write> BundleWriter<W> {
    /// Begins a file with its header.
    pub(crate) fn new(out: W, thread: ThreadId, head: Seq, chain: String) -> io::Result<Self> {
        let mut writer = Self {
            out,
            hash: Sha256::new(),
            records: 0,
            blobs: HashSet::new(),
            lost: HashSet::new(),
            head: Seq::ZERO,
        };
        writer.line(&BundleLine::Thread(BundleHeader {
            format: FORMAT.to_owned(),
            version: VERSION,
            thread,
            head,
            chain,
        }))?;
        Ok(writer)
    }

    /// Whether the file already holds this blob, or its `lost` line.
    pub(crate) fn has(&self, hash: &Hash) -> bool {
        self.blobs.contains(hash) || self.lost.contains(hash)
    }

    pub(crate) fn blob(&mut self, hash: Hash, bytes: &[u8]) -> io::Result<()> {
        self.line(&BundleLine::Blob {
            hash: blob::hex(&hash),
            base64: STANDARD.encode(bytes),
        })?;
        self.blobs.insert(hash);
        Ok(())
    }

    pub(crate) fn lost(&mut self, hash: Hash, why: String) -> io::Result<()> {
        let line = BundleLine::Lost {
            hash: blob::hex(&hash),
            why,
        };
        self.line(&line)?;
        self.lost.insert(hash);
        Ok(())
    }

    pub(crate) fn record(&mut self, record: Record) -> io::Result<()> {
        self.head = record.seq;
        self.records += 1;
        self.line(&BundleLine::Record(Box::new(record)))
    }

    /// Writes the seal and flushes the file.
    pub(crate) fn finish(mut self) -> io::Result<BundleEnd> {
        let end = BundleEnd {
            records: self.records,
            blobs: self.blobs.len() as u64,
            head: self.head,
            sha256: blob::hex(&self.hash.clone().finalize().into()),
        };
        self.line(&BundleLine::End(end.clone()))?;
        self.out.flush()?;
        Ok(end)
    }

    fn line(&mut self, line: &BundleLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        if text.len() >= LINE_BYTES_MAX {
            let what = format!("a line of {} bytes could not be read again", text.len());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        text.push(b'\n');
        self.hash.update(&text);
        self.out.write_all(&text)
    }
}
