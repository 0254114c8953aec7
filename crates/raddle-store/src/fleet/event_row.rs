//! Encoding of bodies in rows: as they are, or compressed.

use raddle_core::ports::ReadError;
use raddle_core::{Event, Seq};

use super::error;
use crate::records;

/// Form of a body that is stored as it is.
const PLAIN: i16 = 0;

/// Form of a body that is compressed, after its length. The local journal uses the same number.
const PACKED: i16 = 2;

/// Minimum length of a body to compress. A shorter one gains little.
const PACKED_BYTES_MIN: usize = 900;

/// Maximum length of a body that is decompressed, against a damaged length.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

/// Compression level of zstd: the fastest of the regular ones.
const LEVEL: i32 = 1;

/// Encodes a body. Returns its form too.
pub(super) fn encode(body: Vec<u8>) -> (i16, Vec<u8>) {
    if body.len() < PACKED_BYTES_MIN {
        return (PLAIN, body);
    }
    // A body that cannot be compressed, or does not become shorter, stays as it is.
    let Ok(packed) = zstd::bulk::compress(&body, LEVEL) else {
        return (PLAIN, body);
    };
    let length = (body.len() as u64).to_le_bytes();
    if packed.len() + length.len() >= body.len() {
        return (PLAIN, body);
    }
    (PACKED, [length.as_slice(), &packed].concat())
}

/// Decodes a body. `None` means that it is damaged; an unknown form is an error.
pub(super) fn decode(form: i16, body: Vec<u8>) -> Result<Option<Vec<u8>>, ReadError> {
    match form {
        PLAIN => Ok(Some(body)),
        PACKED => Ok(unpack(&body)),
        _ => Err(ReadError::Newer(format!("a body of the form {form}"))),
    }
}

fn unpack(body: &[u8]) -> Option<Vec<u8>> {
    let (length, packed) = body.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let unpacked = zstd::bulk::decompress(packed, length.min(UNPACKED_BYTES_MAX)).ok()?;
    (unpacked.len() == length).then_some(unpacked)
}

/// Decodes an event.
pub(super) fn event(seq: Seq, form: i16, body: Vec<u8>) -> Result<Event, ReadError> {
    let json = decode(form, body)?;
    let json = json.ok_or_else(|| error::corrupt(seq, "it cannot be unpacked"))?;
    // The bytes are intact, so a newer version wrote something that this one does not know.
    let newer = |error| ReadError::Newer(format!("record {seq}: {error}"));
    records::decode(&json).map_err(newer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_from_its_row() {
        for body in [Vec::new(), b"short".to_vec(), b"long ".repeat(1000)] {
            let (form, stored) = encode(body.clone());
            assert!(stored.len() <= body.len());
            assert_eq!(decode(form, stored), Ok(Some(body)));
        }
    }

    #[test]
    fn a_damaged_body_is_noticed() {
        let (form, stored) = encode(b"long ".repeat(1000));
        for bytes in [0, 7, 8, stored.len() - 1] {
            assert_eq!(decode(form, stored[..bytes].to_vec()), Ok(None));
        }
        assert!(matches!(decode(9, stored), Err(ReadError::Newer(_))));
    }
}
