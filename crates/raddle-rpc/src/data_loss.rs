//! Data that a transport could not deliver.

use std::sync::{Arc, OnceLock};

/// Whether data was lost on a connection, and why. Cheap to clone; the first reason is kept.
///
/// A peer that disconnects with nothing pending in either direction loses nothing.
#[derive(Clone, Debug, Default)]
pub struct DataLoss(Arc<OnceLock<Box<str>>>);

impl DataLoss {
    /// Records a loss. Later reasons are dropped.
    pub fn note(&self, why: impl Into<Box<str>>) {
        let _ = self.0.set(why.into());
    }

    /// Reason of the loss, if any.
    pub fn why(&self) -> Option<&str> {
        self.0.get().map(AsRef::as_ref)
    }
}
