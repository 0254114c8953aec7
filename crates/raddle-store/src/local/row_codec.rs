//! How a row holds an event: as JSON, as JSON that is packed, or as the name of a file that holds the JSON.

use std::borrow::Cow;
use std::io;

use super::files::BlobFiles;
use crate::blob::{self, Hash};

/// A body that is longer than this is kept in a file of its own.
const BODY_BYTES_MAX: usize = 64 << 10;

/// A body that is shorter than this is not worth packing. A longer one does not fit on a page of the
/// file as it is, and would leave much of its last page empty.
const PACKED_BYTES_MIN: usize = 900;

/// How hard to pack: quickly.
const LEVEL: i32 = 1;

/// A body as its row holds it.
#[derive(Debug)]
pub(super) struct StoredBody {
    pub(super) form: i64,
    pub(super) body: Vec<u8>,
}

/// A file beside the journal, as a row names it: the hash of what it holds, and how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyFile {
    pub(super) hash: Hash,
    pub(super) bytes: usize,
}

/// Why a body cannot be had from its row.
#[derive(Debug)]
pub(super) enum BodyError {
    /// A newer version wrote it in a form of its own.
    Newer,
    /// It is not what was written.
    Damaged(String),
    /// It may be had another time.
    Unavailable(String),
}

/// As JSON.
const INLINE: i64 = 0;

/// As the name of a file.
const IN_FILE: i64 = 1;

/// As packed JSON, after its length.
const PACKED: i64 = 2;

impl StoredBody {
    /// The row's share of a body, and what of it must be in a file before the row is written.
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
        // What cannot be packed, or is no shorter for it, stays as it is.
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

    /// The file that holds the body, if one does.
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

/// How many bytes the length of packed JSON takes.
const LENGTH_BYTES: usize = size_of::<u64>();

/// Packed JSON, and how long it is.
fn packed(body: &[u8]) -> Option<(usize, &[u8])> {
    let (bytes, packed) = body.split_first_chunk::<LENGTH_BYTES>()?;
    let bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
    (bytes <= BODY_BYTES_MAX).then_some((bytes, packed))
}

/// How long the JSON of a row is.
pub(super) fn weight(form: i64, body: &[u8]) -> usize {
    let bytes = match form {
        IN_FILE => body_file(form, body).map(|beside| beside.bytes),
        PACKED => packed(body).map(|(bytes, _)| bytes),
        _ => None,
    };
    bytes.unwrap_or(body.len())
}

/// What a file that cannot be read means. Only one that is gone or is not what it was is damage; too many
/// open files, or a disk that does not answer, pass.
fn unreadable(error: io::Error) -> BodyError {
    let passes = error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound;
    if passes {
        BodyError::Unavailable(error.to_string())
    } else {
        BodyError::Damaged(error.to_string())
    }
}

/// The JSON of a row.
pub(super) fn open<'a>(
    form: i64,
    body: &'a [u8],
    files: &BlobFiles,
) -> Result<Cow<'a, [u8]>, BodyError> {
    match form {
        INLINE => Ok(Cow::Borrowed(body)),
        IN_FILE => {
            let unnamed = || BodyError::Damaged("it names no file".to_owned());
            let beside = body_file(form, body).ok_or_else(unnamed)?;
            Ok(Cow::Owned(files.read(&beside.hash).map_err(unreadable)?))
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
