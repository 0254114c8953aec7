//! What the model was told about its surroundings.

use super::Thread;
use crate::Briefed;

impl Thread {
    /// Whether this is not what the model was last told.
    pub(super) fn is_news(&self, it: &Briefed) -> bool {
        match self.briefs.get(&it.topic) {
            Some(known) => known.digest != digest(it),
            None => !it.text.is_empty(),
        }
    }
}

/// A number for a text: FNV-1a. The text itself would be kept in memory with every thread.
pub(super) fn digest(it: &Briefed) -> u64 {
    let bytes = it.text.bytes();
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
