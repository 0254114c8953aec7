//! What turns that run changed so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::ToolJob;
use raddle_core::{ThreadId, TurnId};

use crate::file_call;
use crate::files::{ChangePlan, TurnDiff};

type SharedDiff = Arc<Mutex<TurnDiff>>;

/// The diffs of turns that run.
#[derive(Debug, Default)]
pub(crate) struct TurnDiffs {
    /// Each has a lock of its own: to compare long files takes a while, for which no other turn waits.
    all: Mutex<BTreeMap<(ThreadId, TurnId), SharedDiff>>,
}

impl TurnDiffs {
    /// A call changed something: the turn's diff with that in it.
    pub(crate) fn changed(&self, job: &ToolJob, planned: &ChangePlan) -> String {
        let whose = (job.thread, job.turn.clone());
        let mut all = locked(&self.all);
        let diff = all.entry(whose).or_insert_with(|| {
            let nothing = TurnDiff::new(file_call::base(job));
            Arc::new(Mutex::new(nothing))
        });
        let diff = diff.clone();
        drop(all);
        let mut diff = locked(&diff);
        diff.take(planned);
        file_call::turn_diff_text(&diff)
    }

    /// A turn is over.
    pub(crate) fn forget(&self, thread: ThreadId, turn: &TurnId) {
        locked(&self.all).remove(&(thread, turn.clone()));
    }
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
