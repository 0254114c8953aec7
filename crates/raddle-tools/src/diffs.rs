//! What turns that run changed so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use raddle_core::ports::Job;
use raddle_core::{ThreadId, TurnId};

use crate::files::{Planned, TurnDiff};
use crate::on_files;

/// The diffs of turns that run.
#[derive(Debug, Default)]
pub(crate) struct Diffs {
    all: Mutex<BTreeMap<(ThreadId, TurnId), TurnDiff>>,
}

impl Diffs {
    /// A call changed something: the turn's diff with that in it.
    pub(crate) fn changed(&self, job: &Job, planned: &Planned) -> String {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let diff = all
            .entry((job.thread, job.turn.clone()))
            .or_insert_with(|| TurnDiff::new(on_files::base(job)));
        diff.take(planned);
        on_files::told(diff)
    }

    /// A turn is over.
    pub(crate) fn forget(&self, thread: ThreadId, turn: &TurnId) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(thread, turn.clone()));
    }
}
