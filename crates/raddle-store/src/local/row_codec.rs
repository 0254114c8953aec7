//! Encoding of an event in a row: as JSON, as compressed JSON, or as the hash of a file that holds
//! the JSON.

use std::borrow::Cow;
use std::io;

use super::files::BlobFiles;
use crate::blob::{self, Hash};

/// Maximum length of a body in a row. A longer one is stored in its own file.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Minimum length of a body to compress. A longer body does not fit on a page of the file
/// uncompressed, and would leave much of its last page empty.
const PACKED_BYTES_MIN: usize = 900;

/// Compression level of zstd: the fastest of the regular ones.
const LEVEL: i32 = 1;

/// A body as stored in its row.
#[derive(Debug)]
pub(super) struct StoredBody {
    pub(super) form: i64,
    pub(super) body: Vec<u8>,
}

/// Reference to a blob file: the hash and length of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyFile {
    pub(super) hash: Hash,
    pub(super) bytes: usize,
}

/// Reason why a body cannot be read from its row.
#[derive(Debug)]
pub(super) enum BodyError {
    /// A newer version wrote it in an unknown form.
    Newer,
    /// The body differs from what was written.
    Damaged(String),
    /// The body is temporarily unavailable.
    Unavailable(String),
}

/// Form of a body stored as JSON.
const INLINE: i64 = 0;

/// Form of a body stored in a file.
const IN_FILE: i64 = 1;

/// Form of a body stored as compressed JSON, after its length.
const PACKED: i64 = 2;

impl StoredBody {
    /// Encodes a body. Also returns the bytes that must be in a file before the row is written.
    pub(super) fn new(json: Vec<u8>) -> (Self, Option<(Hash, Vec<u8>)>) {
        if json.len() <= BODY_BYTES_MAX {
            return (Self::in_row(json), None);
        }
        let hash = blob::hash(&json);
        let bytes = json.len() as u64;
        let body = [hash.as_slice(), &bytes.to_le_bytes()].concat();
        (
            Self {
                form: IN_FILE,
                body,
            },
            Some((hash, json)),
        )
    }

    fn in_row(json: Vec<u8>) -> Self {
        let inline = |body| Self { form: INLINE, body };
        if json.len() < PACKED_BYTES_MIN {
            return inline(json);
        }
        // A body that cannot be compressed, or does not become shorter, stays uncompressed.
        let Ok(packed) = zstd::bulk::compress(&json, LEVEL) else {
            return inline(json);
        };
        if packed.len() + LENGTH_BYTES >= json.len() {
            return inline(json);
        }
        let bytes = json.len() as u64;
        let body = [&bytes.to_le_bytes(), packed.as_slice()].concat();
        Self { form: PACKED, body }
    }

    /// Returns the file that holds the body, if one does.
    pub(super) fn body_file(&self) -> Option<BodyFile> {
        body_file(self.form, &self.body)
    }
}

fn body_file(form: i64, body: &[u8]) -> Option<BodyFile> {
    let (hash, bytes) = body.split_at_checked(size_of::<Hash>())?;
    let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
    (form == IN_FILE).then_some(BodyFile {
        hash: hash.try_into().ok()?,
        bytes: usize::try_from(bytes).ok()?,
    })
}

/// Bytes of the length before compressed JSON.
const LENGTH_BYTES: usize = size_of::<u64>();

/// Splits a body into the length of its JSON and the compressed JSON.
fn packed(body: &[u8]) -> Option<(usize, &[u8])> {
    let (bytes, packed) = body.split_first_chunk::<LENGTH_BYTES>()?;
    let bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
    (bytes <= BODY_BYTES_MAX).then_some((bytes, packed))
}

/// Returns the length of a row's JSON.
pub(super) fn weight(form: i64, body: &[u8]) -> usize {
    let bytes = match form {
        IN_FILE => body_file(form, body).map(|file| file.bytes),
        PACKED => packed(body).map(|(bytes, _)| bytes),
        _ => None,
    };
    bytes.unwrap_or(body.len())
}

/// Maps an error of reading a file. Only a missing or changed file is damage; too many open files
/// or a stalled disk are temporary.
fn unreadable(error: io::Error) -> BodyError {
    let temporary = error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound;
    if temporary {
        BodyError::Unavailable(error.to_string())
    } else {
        BodyError::Damaged(error.to_string())
    }
}

/// Decodes the JSON of a row.
pub(super) fn open<'a>(
    form: i64,
    body: &'a [u8],
    files: &BlobFiles,
) -> Result<Cow<'a, [u8]>, BodyError> {
    match form {
        INLINE => Ok(Cow::Borrowed(body)),
        IN_FILE => {
            let unnamed = || BodyError::Damaged("it names no file".to_owned());
            let file = body_file(form, body).ok_or_else(unnamed)?;
            Ok(Cow::Owned(files.read(&file.hash).map_err(unreadable)?))
        }
        PACKED => {
            let damaged = || BodyError::Damaged("it cannot be unpacked".to_owned());
            let (bytes, packed) = packed(body).ok_or_else(damaged)?;
            let json = zstd::bulk::decompress(packed, bytes).map_err(|_| damaged())?;
            Ok(Cow::Owned(json))
        }
        _ => Err(BodyError::Newer),
    }
}
