//! What a transport could not carry.

use std::sync::{Arc, OnceLock};

/// Whether something was lost on a connection, and why. Cheap to clone; the first reason stands.
///
/// A peer that leaves with nothing left to say or to hear loses nothing.
#[derive(Clone, Debug, Default)]
pub struct DataLoss(Arc<OnceLock<Box<str>>>);

impl DataLoss {
    /// Something was lost.
    pub fn note(&self, why: impl Into<Box<str>>) {
        let _ = self.0.set(why.into());
    }

    /// Why something was lost, if anything was.
    pub fn why(&self) -> Option<&str> {
        self.0.get().map(AsRef::as_ref)
    }
}
