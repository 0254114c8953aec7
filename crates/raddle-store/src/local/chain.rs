//! Detection of damage: a hash chained over a thread's events, and a checksum on each row outside
//! the chain that reads rely on. The rows of threads, lists and kind indexes compute theirs
//! themselves. The encoding of item parts is here because the checksum of a delta contains it.

use raddle_core::{Delta, ItemPart, Seq, ThreadId, Timestamp};
use sha2::{Digest, Sha256};

/// A link of the chain: the first half of a SHA-256 over everything in the thread up to here.
pub(super) type Link = [u8; 16];

pub(super) type RowChecksum = [u8; 8];

/// Link before a thread's first event. It includes the thread's id, so a row cannot move between
/// threads.
pub(super) fn origin(thread: ThreadId) -> Link {
    short(Sha256::new().chain_update(thread.as_uuid().as_bytes()))
}

/// Returns the link of an event that follows another. `form` says how `body` is stored: plain,
/// packed or in a file.
pub(super) fn link(before: &Link, seq: Seq, at: Timestamp, form: i64, body: &[u8]) -> Link {
    let hash = Sha256::new()
        .chain_update(before)
        .chain_update(seq.0.to_le_bytes())
        .chain_update(at.0.to_le_bytes())
        .chain_update(form.to_le_bytes())
        .chain_update(body);
    short(hash)
}

/// Returns the checksum of a delta.
pub(super) fn sum_of_delta(
    thread: ThreadId,
    seq: Seq,
    at: Timestamp,
    delta: &Delta,
) -> RowChecksum {
    let item = delta.item.as_str();
    let hash = Sha256::new()
        .chain_update(thread.as_uuid().as_bytes())
        .chain_update(seq.0.to_le_bytes())
        .chain_update(at.0.to_le_bytes())
        .chain_update((item.len() as u64).to_le_bytes())
        .chain_update(item)
        .chain_update(part(delta.part).to_le_bytes())
        .chain_update(delta.offset.to_le_bytes())
        .chain_update(&delta.text);
    short(hash)
}

/// Returns the checksum of a base. A base is stored under a number and may belong to several
/// threads.
pub(super) fn sum_of_base(number: i64, head: Seq, version: u32, body: &[u8]) -> RowChecksum {
    let hash = Sha256::new()
        .chain_update(number.to_le_bytes())
        .chain_update(head.0.to_le_bytes())
        .chain_update(version.to_le_bytes())
        .chain_update(body);
    short(hash)
}

/// Returns the checksum of a segment that a fork shares.
pub(super) fn sum_of_segment(number: i64, upto: Seq, source: i64) -> RowChecksum {
    let hash = Sha256::new()
        .chain_update(number.to_le_bytes())
        .chain_update(upto.0.to_le_bytes())
        .chain_update(source.to_le_bytes());
    short(hash)
}

/// Returns the first bytes of a hash.
pub(super) fn short<const BYTES: usize>(hash: Sha256) -> [u8; BYTES] {
    let hash: [u8; 32] = hash.finalize().into();
    let mut short = [0; BYTES];
    short.copy_from_slice(&hash[..BYTES]);
    short
}

/// Encodes a part of an item as a number, as it is stored.
pub(super) fn part(part: ItemPart) -> i64 {
    match part {
        ItemPart::Text => 0,
        ItemPart::Printed => 1,
        ItemPart::Summary(at) => 2 + 2 * i64::from(at),
        ItemPart::Content(at) => 3 + 2 * i64::from(at),
    }
}

/// Decodes the number of a part.
pub(super) fn part_of(number: i64) -> Option<ItemPart> {
    let at = || u32::try_from((number - 2) / 2).ok();
    match number {
        0 => Some(ItemPart::Text),
        1 => Some(ItemPart::Printed),
        ..0 => None,
        _ if number % 2 == 0 => at().map(ItemPart::Summary),
        _ => at().map(ItemPart::Content),
    }
}
