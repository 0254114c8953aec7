//! A thread as one file that stands for itself: JSON lines, a header first, a seal last.
//!
//! Each line is an object with one member that says what it is: `thread` (the header), `blob`,
//! `record`, `lost`, `end`. A blob comes before the first record that names it, and once. The seal
//! counts what came before and carries a hash over all of it, so that a file that was cut or changed is
//! told from a whole one. Neither side holds more than a line at a time.

mod reader;
mod writer;

pub use reader::BundleReader;
pub(crate) use writer::BundleWriter;

use std::io;

use raddle_core::{Record, Seq, ThreadId};
use serde::{Deserialize, Serialize};

/// What the header calls the format.
const FORMAT: &str = "raddle-thread";

/// The form that this version writes. A file with a higher one is refused whole.
const VERSION: u32 = 1;

/// The longest line. It bounds what reading a file that someone else made can cost.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleHeader {
    /// What the file is; always the same word.
    pub format: String,
    /// Its form.
    pub version: u32,
    /// The thread.
    pub thread: ThreadId,
    /// Its newest record, as the journal had it.
    pub head: Seq,
    /// The end of its hash chain, in hex, as the journal had it; empty where the journal could not say.
    pub chain: String,
}

/// What a file holds between its header and its seal.
#[derive(Clone, Debug, PartialEq)]
pub enum BundleEntry {
    /// Bytes that records name by their hash.
    Blob(Vec<u8>),
    /// A record.
    Record(Box<Record>),
    /// Bytes that records name and that were lost before the file was made: their name, and why.
    Lost(String, String),
}

/// What the seal of a file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleEnd {
    /// How many records there are.
    pub records: u64,
    /// How many blobs.
    pub blobs: u64,
    /// The newest record in the file. Below the header's head, what came after it could not be saved.
    pub head: Seq,
    /// Over every byte before this line, in hex.
    pub sha256: String,
}

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It could not be read or written.
    #[error("the file cannot be read or written")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("this is no exported thread: {0}")]
    Foreign(String),
    /// A newer version made it.
    #[error("a newer version of Raddle wrote this file ({0}); upgrade to read it")]
    Newer(String),
    /// It stops before its seal.
    #[error(
        "the file ends after line {0}, before its seal; part of it is missing, so copy or export it again"
    )]
    Cut(u64),
    /// It is not what was written.
    #[error(
        "the file was changed since it was written: line {line}: {what}; copy or export it again"
    )]
    Altered {
        /// Where that was noticed.
        line: u64,
        /// How.
        what: String,
    },
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum BundleLine {
    Thread(BundleHeader),
    Blob { hash: String, base64: String },
    Record(Box<Record>),
    Lost { hash: String, why: String },
    End(BundleEnd),
}
