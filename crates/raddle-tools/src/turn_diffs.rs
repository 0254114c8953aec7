//! Diffs of running turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use raddle_core::ports::ToolJob;
use raddle_core::{ThreadId, TurnId};

use crate::files::{ChangePlan, TurnDiff};
use crate::mutex::locked;

/// Maximum bytes of a turn's diff that is sent.
const DIFF_BYTES_MAX: usize = 1 << 20;

type SharedDiff = Arc<Mutex<TurnDiff>>;

/// Changes of file tools in running turns.
#[derive(Debug, Default)]
pub struct TurnDiffs {
    /// Each diff has its own lock: comparing long files takes a while, and must not block other
    /// turns.
    all: Mutex<BTreeMap<(ThreadId, TurnId), SharedDiff>>,
    /// The diffs that clients received last.
    sent: Mutex<BTreeMap<(ThreadId, TurnId), String>>,
}

impl TurnDiffs {
    /// Records applied changes and returns the turn's diff.
    pub(crate) fn changed(&self, job: &ToolJob, planned: &ChangePlan) -> String {
        let key = (job.thread, job.turn.clone());
        let mut all = locked(&self.all);
        let diff = all.entry(key).or_insert_with(|| {
            let nothing = TurnDiff::new(Path::new(&job.settings.cwd));
            Arc::new(Mutex::new(nothing))
        });
        let diff = diff.clone();
        drop(all);
        let mut diff = locked(&diff);
        diff.record(planned);
        truncated(diff.text())
    }

    /// Returns the diff of the files outside these folders.
    pub(crate) fn text_outside(
        &self,
        thread: ThreadId,
        turn: &TurnId,
        folders: &[&Path],
    ) -> String {
        let diff = locked(&self.all).get(&(thread, turn.clone())).cloned();
        diff.map_or_else(String::new, |diff| {
            locked(&diff).text_of(|path| !folders.iter().any(|it| path.starts_with(it)))
        })
    }

    /// Returns the diff of a turn if it is another than clients received last.
    pub(crate) fn changed_text(
        &self,
        thread: ThreadId,
        turn: &TurnId,
        text: String,
    ) -> Option<String> {
        let mut sent = locked(&self.sent);
        let last = sent.entry((thread, turn.clone())).or_default();
        if *last == text {
            return None;
        }
        last.clone_from(&text);
        Some(text)
    }

    /// Drops the diff of a turn that has ended.
    pub(crate) fn forget(&self, thread: ThreadId, turn: &TurnId) {
        let key = (thread, turn.clone());
        locked(&self.all).remove(&key);
        locked(&self.sent).remove(&key);
    }
}

/// Returns the diff of a turn, truncated if it is long.
pub(crate) fn truncated(mut text: String) -> String {
    if text.len() > DIFF_BYTES_MAX {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(DIFF_BYTES_MAX));
        text.push_str(&format!("\n… of {whole} bytes\n"));
    }
    text
}
