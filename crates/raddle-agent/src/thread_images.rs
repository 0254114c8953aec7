//! Images of a thread: stored for its records, and loaded again for its items.

use raddle_core::ports::AppendError;
use raddle_core::{Image, Refusal, ThreadId};
use raddle_protocol as wire;

use crate::images::show;
use crate::{AgentError, NewImage, Threads};

impl Threads {
    /// Stores an image for a thread, so that a record may name it.
    pub async fn keep(&self, id: ThreadId, image: NewImage) -> Result<Image, AgentError> {
        let stored = image.keep(&self.shared.blobs_of(id)).await;
        stored.map_err(|error| match error {
            // Storing an image twice is harmless.
            AppendError::Unavailable(_) | AppendError::Unknown(_) => AgentError::Unavailable,
            error => Refusal::NotStored(error.to_string()).into(),
        })
    }

    /// Replaces the names of images in an item by the images.
    pub async fn show(&self, id: ThreadId, item: &mut wire::ThreadItem) {
        if shows_images(item) {
            show(&self.shared.blobs_of(id), item).await;
        }
    }
}

/// Whether an item may name images.
fn shows_images(item: &wire::ThreadItem) -> bool {
    matches!(
        item,
        wire::ThreadItem::UserMessage(_) | wire::ThreadItem::DynamicToolCall(_)
    )
}
