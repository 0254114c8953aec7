//! What the model was told about its surroundings.

use super::Thread;
use crate::{Briefed, Event, RecordBody};

impl Thread {
    /// What is to be told of this: only what is not what was last told.
    pub(super) fn news(&self, briefs: Vec<Briefed>) -> impl Iterator<Item = RecordBody> + use<'_> {
        let news = briefs.into_iter().filter(|it| self.is_news(it));
        news.map(|it| Event::Briefed(it).into())
    }

    fn is_news(&self, it: &Briefed) -> bool {
        match self.briefs.get(&it.topic) {
            Some(known) => known.digest != Some(digest(it)),
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
