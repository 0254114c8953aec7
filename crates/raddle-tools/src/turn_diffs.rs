//! Diffs of running turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::ToolJob;
use raddle_core::{ThreadId, TurnId};

use crate::files::{ChangePlan, TurnDiff};

/// Maximum bytes of a turn's diff that is sent.
const DIFF_BYTES_MAX: usize = 1 << 20;

type SharedDiff = Arc<Mutex<TurnDiff>>;

#[derive(Debug, Default)]
pub(crate) struct TurnDiffs {
    /// Each diff has its own lock: comparing long files takes a while, and must not block other
    /// turns.
    all: Mutex<BTreeMap<(ThreadId, TurnId), SharedDiff>>,
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
        turn_diff_text(&diff)
    }

    /// Drops the diff of a turn that has ended.
    pub(crate) fn forget(&self, thread: ThreadId, turn: &TurnId) {
        locked(&self.all).remove(&(thread, turn.clone()));
    }
}

/// Returns the diff of a turn, truncated if it is long.
fn turn_diff_text(diff: &TurnDiff) -> String {
    let mut text = diff.text();
    if text.len() > DIFF_BYTES_MAX {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(DIFF_BYTES_MAX));
        text.push_str(&format!("\n… of {whole} bytes\n"));
    }
    text
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
