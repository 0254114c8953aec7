//! The blobs of one thread.

use std::sync::Arc;

use raddle_core::ports::{AppendError, Blobs, ReadError};
use raddle_core::{Blob, ThreadId};

/// A store of blobs, as one thread sees it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ThreadBlobs {
    pub(crate) store: Arc<dyn Blobs>,
    pub(crate) thread: ThreadId,
}

impl ThreadBlobs {
    pub(crate) async fn put(&self, bytes: Vec<u8>, media: String) -> Result<Blob, AppendError> {
        self.store.put(self.thread, bytes, media).await
    }

    pub(crate) async fn get(&self, blob: Blob) -> Result<Vec<u8>, ReadError> {
        self.store.get(self.thread, blob).await
    }
}
