//! Diffs of running turns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::ToolJob;
use raddle_core::{ThreadId, TurnId};

use crate::file_call;
use crate::files::{ChangePlan, TurnDiff};

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
            let nothing = TurnDiff::new(file_call::base(job));
            Arc::new(Mutex::new(nothing))
        });
        let diff = diff.clone();
        drop(all);
        let mut diff = locked(&diff);
        diff.record(planned);
        file_call::turn_diff_text(&diff)
    }

    /// Drops the diff of a turn that is over.
    pub(crate) fn forget(&self, thread: ThreadId, turn: &TurnId) {
        locked(&self.all).remove(&(thread, turn.clone()));
    }
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
