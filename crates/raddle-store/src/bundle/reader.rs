//! Reads a file line by line. Its content is untrusted until the seal is verified.

use std::io::{BufRead, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_core::{Event, LEVEL, RecordBody, Seq};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    BundleEnd, BundleEntry, BundleError, BundleHeader, BundleLine, FORMAT, LINE_BYTES_MAX, VERSION,
};
use crate::blob;

/// Reader of an exported file. Its entries are untrusted until [`BundleReader::next`] returns
/// `None`: only then was the seal reached and verified.
#[derive(Debug)]
pub struct BundleReader<R> {
    input: R,
    header: BundleHeader,
    hash: Sha256,
    line: u64,
    records: u64,
    blobs: u64,
    head: Seq,
    line_bytes: usize,
    end: Option<BundleEnd>,
}

impl<R: BufRead> BundleReader<R> {
    /// Opens a file and reads its header.
    pub fn open(mut input: R) -> Result<Self, BundleError> {
        let mut hash = Sha256::new();
        let foreign = |what: &str| BundleError::Foreign(what.to_owned());
        let text = match read_line(&mut input, 1)? {
            Some(text) => text,
            None => return Err(foreign("it is empty")),
        };
        let header: Value = serde_json::from_slice(&text)
            .map_err(|_| foreign("the first line is not a JSON header"))?;
        let header = &header["thread"];
        if header["format"] != FORMAT {
            return Err(foreign("the first line does not name the format"));
        }
        if let Some(version) = header["version"].as_u64()
            && version > u64::from(VERSION)
        {
            return Err(BundleError::Newer(format!("form {version}")));
        }
        let header: BundleHeader = serde_json::from_value(header.clone())
            .map_err(|error| BundleError::Foreign(format!("invalid header: {error}")))?;
        hash.update(&text);
        Ok(Self {
            input,
            header,
            hash,
            line: 1,
            records: 0,
            blobs: 0,
            head: Seq::ZERO,
            line_bytes: 0,
            end: None,
        })
    }

    /// Returns the header, which was read on opening.
    pub fn header(&self) -> &BundleHeader {
        &self.header
    }

    /// Returns the length of the last line read.
    pub(crate) fn line_bytes(&self) -> usize {
        self.line_bytes
    }

    /// Returns the seal, once it was reached and verified.
    pub fn end(&self) -> Option<&BundleEnd> {
        self.end.as_ref()
    }

    /// Returns the next entry, or `None` once the whole file was read and the seal verified.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator invites to take what was read before its end for true"
    )]
    pub fn next(&mut self) -> Result<Option<BundleEntry>, BundleError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let text = read_line(&mut self.input, self.line + 1)?;
        let text = text.ok_or(BundleError::Cut(self.line))?;
        self.line += 1;
        self.line_bytes = text.len();
        let line: BundleLine = match serde_json::from_slice(&text) {
            Ok(line) => line,
            Err(error) => return Err(self.unread(text, &error)),
        };
        let entry = match line {
            BundleLine::Thread(_) => return Err(self.altered("a second header")),
            BundleLine::End(end) => return self.close(end).map(|()| None),
            BundleLine::Blob { hash, base64 } => {
                let bytes = STANDARD.decode(base64);
                let bytes = bytes.map_err(|_| self.altered("a blob is not valid base64"))?;
                if blob::hex(&blob::hash(&bytes)) != hash {
                    return Err(self.altered("a blob does not match its hash"));
                }
                self.blobs += 1;
                BundleEntry::Blob(bytes)
            }
            BundleLine::Record(record) => {
                if record.seq <= self.head {
                    return Err(self.altered("a record number does not ascend"));
                }
                if let RecordBody::Event(event) = &record.body
                    && let Event::Owned(owned) = &**event
                    && owned.level > LEVEL
                {
                    return Err(BundleError::Newer(format!("version {:?}", owned.version)));
                }
                self.head = record.seq;
                self.records += 1;
                BundleEntry::Record(record)
            }
            BundleLine::Lost { hash, why } => BundleEntry::Lost(hash, why),
        };
        self.hash.update(&text);
        Ok(Some(entry))
    }

    fn close(&mut self, end: BundleEnd) -> Result<(), BundleError> {
        let hash = blob::hex(&self.hash.clone().finalize().into());
        let computed = BundleEnd {
            records: self.records,
            blobs: self.blobs,
            head: self.head,
            sha256: hash,
        };
        if end != computed {
            return Err(self.altered("the seal does not match the content before it"));
        }
        if !self.input.fill_buf()?.is_empty() {
            return Err(self.altered("something follows the seal"));
        }
        self.end = Some(end);
        Ok(())
    }

    /// Handles a line that this version cannot read. If the seal is right, a newer version wrote
    /// the line; otherwise the file is damaged.
    fn unread(&mut self, mut text: Vec<u8>, error: &serde_json::Error) -> BundleError {
        let line = self.line;
        let altered = self.altered(&error.to_string());
        loop {
            if let Ok(BundleLine::End(end)) = serde_json::from_slice(&text) {
                let whole = end.sha256 == blob::hex(&self.hash.clone().finalize().into());
                let newer = BundleError::Newer(format!("line {line}: {error}"));
                return if whole { newer } else { altered };
            }
            self.hash.update(&text);
            text = match read_line(&mut self.input, self.line + 1) {
                Ok(Some(text)) => text,
                Ok(None) | Err(_) => return altered,
            };
            self.line += 1;
        }
    }

    fn altered(&self, what: &str) -> BundleError {
        BundleError::Altered {
            line: self.line,
            what: what.to_owned(),
        }
    }
}

/// Reads a whole line. Returns `None` at the end of the file.
fn read_line(input: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>, BundleError> {
    let mut line = Vec::new();
    let limit = LINE_BYTES_MAX as u64;
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() == LINE_BYTES_MAX => Err(BundleError::Altered {
            line: number,
            what: format!("it is longer than {LINE_BYTES_MAX} bytes"),
        }),
        Some(_) => Err(BundleError::Cut(number - 1)),
    }
}
