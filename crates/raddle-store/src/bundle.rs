//! A thread exported as one self-contained file: JSON lines, a header first, a seal last.
//!
//! Each line is an object with one member that names its kind: `thread` (the header), `blob`,
//! `record`, `lost`, `end`. A blob comes once, before the first record that refers to it. The seal
//! counts the preceding lines and carries a hash over them, so a truncated or changed file is
//! detected. Reader and writer hold one line at a time.

mod reader;
mod writer;

pub use reader::BundleReader;
pub(crate) use writer::BundleWriter;

use std::io;

use raddle_core::{Record, Seq, ThreadId};
use serde::{Deserialize, Serialize};

/// Value of the header's `format`.
const FORMAT: &str = "raddle-thread";

/// Version that this build writes. A file with a higher version is rejected as a whole.
const VERSION: u32 = 1;

/// Longest line. It bounds the memory that reading an untrusted file can cost.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleHeader {
    /// File type; always the same word.
    pub format: String,
    /// Version of the file format.
    pub version: u32,
    /// Id of the exported thread.
    pub thread: ThreadId,
    /// Newest record of the thread in the journal.
    pub head: Seq,
    /// End of the thread's hash chain in the journal, in hex. Empty if the journal could not
    /// determine it.
    pub chain: String,
}

/// Entry between the header and the seal.
#[derive(Clone, Debug, PartialEq)]
pub enum BundleEntry {
    /// Bytes that records refer to by their hash.
    Blob(Vec<u8>),
    /// Record of the thread, in ascending order.
    Record(Box<Record>),
    /// Hash of a blob that was lost before the export, and the reason.
    Lost(String, String),
}

/// Seal of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleEnd {
    /// Number of records in the file.
    pub records: u64,
    /// Number of distinct blobs in the file.
    pub blobs: u64,
    /// Newest record in the file. If it is below the header's head, later records could not be
    /// saved.
    pub head: Seq,
    /// SHA-256 over every byte before this line, in hex.
    pub sha256: String,
}

/// Reason for rejecting a file.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file could not be read or written.
    #[error("the file cannot be read or written")]
    Io(#[from] io::Error),
    /// The file is not an exported thread.
    #[error("this is not an exported thread: {0}; name a file that `raddle thread export` wrote")]
    Foreign(String),
    /// A newer version of Raddle wrote the file.
    #[error("a newer version of Raddle wrote this file ({0}); upgrade to read it")]
    Newer(String),
    /// The file ends before its seal.
    #[error(
        "the file ends after line {0}, before its seal; part of it is missing, so copy or export it again"
    )]
    Cut(u64),
    /// The content does not match the seal or the format.
    #[error(
        "the file was changed since it was written: line {line}: {what}; copy or export it again"
    )]
    Altered {
        /// Line at which the change was detected.
        line: u64,
        /// Description of the change.
        what: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum BundleLine {
    Thread(BundleHeader),
    Blob { hash: String, base64: String },
    Record(Box<Record>),
    Lost { hash: String, why: String },
    End(BundleEnd),
}
