//! Hash chain over a thread's events. It equals the chain of the local journal, so that a thread
//! that moves between them keeps it.

use raddle_core::{Seq, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A link of the chain: the first half of a SHA-256 over everything in the thread up to here.
pub(super) type Link = [u8; 16];

/// Link before a thread's first event. A fork continues the chain of the thread that it began with.
pub(super) fn origin(thread: Uuid) -> Link {
    short(Sha256::new().chain_update(thread.as_bytes()))
}

/// Returns the link of an event that follows another. `form` is the encoding of `body`.
pub(super) fn link(before: &Link, seq: Seq, at: Timestamp, form: i16, body: &[u8]) -> Link {
    let hash = Sha256::new()
        .chain_update(before)
        .chain_update(seq.0.to_le_bytes())
        .chain_update(at.0.to_le_bytes())
        .chain_update(i64::from(form).to_le_bytes())
        .chain_update(body);
    short(hash)
}

fn short(hash: Sha256) -> Link {
    let hash: [u8; 32] = hash.finalize().into();
    let mut link = Link::default();
    link.copy_from_slice(&hash[..size_of::<Link>()]);
    link
}
