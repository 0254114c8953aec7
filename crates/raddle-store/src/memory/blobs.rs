//! In-memory blobs.

use std::future::ready;
use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, Blobs, BoxFuture, ReadError};
use raddle_core::{Blob, Record, RecordBody, ThreadId};

use super::log::ThreadLog;
use super::{MemoryJournal, MemoryState};
use crate::blob::{self, Hash};

#[derive(Debug)]
pub(super) struct StoredBlob {
    bytes: Vec<u8>,
    /// Number of records that refer to it.
    pub(super) names: usize,
    /// Number of puts without a reference from a record yet. `put` is the time of the last.
    pub(super) waiting: usize,
    put: Instant,
}

/// Maximum time that a stored blob may wait for a record that refers to it.
const UNNAMED_MAX: Duration = Duration::from_secs(60 * 60);

/// One journal has one tenant, so its threads share the bytes of equal blobs, and a blob is not
/// looked up by its thread.
impl Blobs for MemoryJournal {
    fn put(
        &self,
        _thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        let hash = blob::hash(&bytes);
        let name = Blob {
            hash: blob::hex(&hash),
            bytes: bytes.len() as u64,
            media,
        };
        let mut state = self.state();
        state.tidy();
        let blob = state.blobs.entry(hash).or_insert(StoredBlob {
            bytes,
            names: 0,
            waiting: 0,
            put: Instant::now(),
        });
        blob.waiting += 1;
        blob.put = Instant::now();
        Box::pin(ready(Ok(name)))
    }

    fn get(&self, _thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        let hash = blob::parse(&blob.hash);
        let state = self.state();
        let bytes = hash.and_then(|hash| state.blobs.get(&hash).map(|it| it.bytes.clone()));
        Box::pin(ready(bytes.ok_or(ReadError::NotFound)))
    }
}

impl MemoryState {
    /// Counts one more reference to each of these blobs.
    pub(super) fn add_references(&mut self, hashes: &[Hash]) {
        for hash in hashes {
            if let Some(bytes) = self.blobs.get_mut(hash) {
                bytes.names += 1;
            }
        }
    }

    /// Deletes blobs without references, and those whose wait for a reference has expired.
    pub(super) fn tidy(&mut self) {
        self.blobs.retain(|_, blob| {
            blob.names > 0 || (blob.waiting > 0 && blob.put.elapsed() < UNNAMED_MAX)
        });
    }
}

impl ThreadLog {
    pub(super) fn blobs(&self) -> Vec<Hash> {
        // Stored records have only well-formed hashes.
        referenced(self.records.values()).unwrap_or_default()
    }
}

/// Returns the hashes of the blobs that records refer to, one for each reference.
pub(super) fn referenced<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Vec<Hash>, AppendError> {
    let events = records.into_iter().filter_map(|it| match &it.body {
        RecordBody::Event(event) => Some(event),
        RecordBody::Delta(_) => None,
    });
    let blobs = events.flat_map(|event| blob::named(event));
    let hash = |name: &Blob| {
        let malformed = || blob::missing(&format!("{:?}", name.hash));
        blob::parse(&name.hash).ok_or_else(malformed)
    };
    blobs.map(hash).collect()
}
