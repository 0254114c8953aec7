//! Blobs in memory.

use std::future::ready;
use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, Blobs, BoxFuture, ReadError};
use raddle_core::{Blob, Record, RecordBody};

use super::log::ThreadLog;
use super::{MemoryJournal, MemoryState};
use crate::blob::{self, Hash};

/// A blob.
#[derive(Debug)]
pub(super) struct StoredBlob {
    bytes: Vec<u8>,
    /// How many records name it.
    pub(super) names: usize,
    /// How often it was put and not yet named, and when that last happened.
    pub(super) waiting: usize,
    put: Instant,
}

/// How long a blob that was put may wait for a record that names it.
const UNNAMED_MAX: Duration = Duration::from_secs(60 * 60);

impl Blobs for MemoryJournal {
    fn put(&self, bytes: Vec<u8>, media: String) -> BoxFuture<'_, Result<Blob, AppendError>> {
        let hash = blob::hash(&bytes);
        let name = Blob {
            hash: blob::hex(&hash),
            bytes: bytes.len() as u64,
            media,
        };
        let mut kept = self.state();
        kept.tidy();
        let blob = kept.blobs.entry(hash).or_insert(StoredBlob {
            bytes,
            names: 0,
            waiting: 0,
            put: Instant::now(),
        });
        blob.waiting += 1;
        blob.put = Instant::now();
        Box::pin(ready(Ok(name)))
    }

    fn get(&self, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        let hash = blob::parse(&blob.hash);
        let kept = self.state();
        let bytes = hash.and_then(|hash| kept.blobs.get(&hash).map(|it| it.bytes.clone()));
        Box::pin(ready(bytes.ok_or(ReadError::NotFound)))
    }
}

impl MemoryState {
    /// So many more records name these.
    pub(super) fn name(&mut self, named: &[Hash]) {
        for hash in named {
            if let Some(bytes) = self.blobs.get_mut(hash) {
                bytes.names += 1;
            }
        }
    }

    /// Forgets what nothing names and nobody waits to name.
    pub(super) fn tidy(&mut self) {
        self.blobs.retain(|_, blob| {
            blob.names > 0 || (blob.waiting > 0 && blob.put.elapsed() < UNNAMED_MAX)
        });
    }
}

impl ThreadLog {
    pub(super) fn blobs(&self) -> Vec<Hash> {
        // What is stored has only good names.
        named(self.records.values()).unwrap_or_default()
    }
}

/// The blobs that records name, each as often as it is named.
pub(super) fn named<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Vec<Hash>, AppendError> {
    let events = records.into_iter().filter_map(|it| match &it.body {
        RecordBody::Event(event) => Some(event),
        RecordBody::Delta(_) => None,
    });
    let named = events.flat_map(|event| blob::named(event));
    let hash = |name: &Blob| {
        let no_name = || blob::missing(&format!("{:?}", name.hash));
        blob::parse(&name.hash).ok_or_else(no_name)
    };
    named.map(hash).collect()
}
