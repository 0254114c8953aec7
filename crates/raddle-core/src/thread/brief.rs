//! Notes on the environment that the model has.

use super::Thread;
use crate::{Briefed, Event, RecordBody, Topic};

impl Thread {
    /// Returns the notes that differ from the newest ones of their topic.
    pub(super) fn changed_briefs(
        &self,
        briefs: Vec<Briefed>,
    ) -> impl Iterator<Item = RecordBody> + use<'_> {
        let changed = briefs.into_iter().filter(|it| self.is_changed(it));
        changed.map(|it| Event::Briefed(it).into())
    }

    /// Returns the notes for input that joins the running turn: the skills that it names. Other
    /// notes wait for the next turn.
    pub(super) fn joining_briefs(
        &self,
        mut briefs: Vec<Briefed>,
    ) -> impl Iterator<Item = RecordBody> + use<'_> {
        briefs.retain(|it| it.topic == Topic::SkillTexts && !it.text.is_empty());
        self.changed_briefs(briefs)
    }

    /// Whether skills of the workspace are withheld, because the operator has not said whether it is
    /// trusted.
    pub fn withholds_skills(&self) -> bool {
        let brief = self.briefs.get(&Topic::WithheldSkills);
        let digest = brief.and_then(|it| it.digest);
        digest.is_some_and(|it| it != EMPTY_DIGEST)
    }

    fn is_changed(&self, it: &Briefed) -> bool {
        match self.briefs.get(&it.topic) {
            Some(known) => known.digest != Some(digest(it)),
            None => !it.text.is_empty(),
        }
    }
}

/// Hash of an empty text.
const EMPTY_DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

/// Hash of a note: FNV-1a. The text itself would stay in memory with every thread.
pub(super) fn digest(it: &Briefed) -> u64 {
    let bytes = it.text.bytes().chain(it.is_asked.then_some(1));
    bytes.fold(EMPTY_DIGEST, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
