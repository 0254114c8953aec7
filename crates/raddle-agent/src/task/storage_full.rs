//! A full journal: the running turn ends as failed, and that is the last record stored of it.

use raddle_core::ports::AppendError;
use raddle_core::{Epoch, Failure, FailureKind, Tail, Thread, WriterEnd};

use tokio::time::Instant;

use super::{RETRY_DELAY, Task};
use crate::open::open;

impl Task {
    /// Reloads the thread after an append failed on full storage. A running turn ends as failed:
    /// the journal reserves space for that record. Returns whether the task continues.
    ///
    /// The thread in memory contains the failed append, so it is folded again from what is stored.
    /// Subscribers stay: they have received exactly the stored records.
    pub(super) async fn fail_turn(&mut self, ended: &WriterEnd) -> bool {
        if let Some(failure) = self.writer.fails() {
            // The end of the turn was not stored either. The next load in this process stores it.
            if matches!(ended, WriterEnd::NotStored(_)) {
                let failure = failure.clone();
                self.shared.unstored_ends().insert(self.id, failure);
            }
            return false;
        }
        let (WriterEnd::NotStored(_), Some(AppendError::Full(why))) = (ended, &self.failed) else {
            return false;
        };
        let failure = storage_full(why);
        let stored = self.writer.stored();
        if stored == self.initial_head {
            // No turn ran here.
            return false;
        }
        let journal = self.journal.clone();
        let opened = self.during(open(&*journal, self.id)).await;
        let (thread, tail) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(thread = %self.id, %error, "the thread cannot be read again");
                return false;
            }
        };
        if thread.head() != stored {
            // Another process has appended.
            return false;
        }
        let Some(turn) = thread.turn().map(|turn| turn.id.clone()) else {
            return self.continue_idle(thread, tail).await;
        };
        tracing::warn!(thread = %self.id, %turn, "the journal is full: the turn ends as failed");
        // A command of this turn may be filling the disk.
        self.end_turn_tools(turn);
        self.work.abort_all();
        let node = self.shared.node(Epoch(thread.epoch().0 + 1));
        let now = self.shared.now();
        self.writer.fail_turn(thread, node, failure, now, tail);
        self.unavailable_since = None;
        self.released = false;
        for message in std::mem::take(&mut self.late) {
            self.offer(message);
        }
        true
    }

    /// Continues with an idle thread: pending commands are rejected, and subscribers stay. A thread
    /// that is being unloaded ends. Returns whether the task continues.
    async fn continue_idle(&mut self, thread: Thread, tail: Tail) -> bool {
        if self.closed || self.unloading.is_some() {
            return false;
        }
        self.writer.reset_to_stored(thread, tail);
        for message in std::mem::take(&mut self.late) {
            self.offer(message);
        }
        // Without this pause, work that the thread begins by itself is retried at once.
        self.during(tokio::time::sleep(RETRY_DELAY)).await;
        true
    }

    /// Waits before the end of the turn is appended again, and unloads the thread if the storage
    /// stays full for too long. A thread that was only just loaded is unloaded at once: no client
    /// waits for its turn.
    pub(super) async fn wait_for_space(&mut self) {
        let since = *self.unavailable_since.get_or_insert_with(Instant::now);
        let outage_max = self.journal.timeouts().outage;
        if self.writer.stored() > self.initial_head && since.elapsed() < outage_max {
            return self.during(tokio::time::sleep(RETRY_DELAY)).await;
        }
        let why = self.failed.as_ref().map(ToString::to_string);
        let actions = self.writer.give_up(why.unwrap_or_default());
        self.act(actions);
    }
}

fn storage_full(why: &str) -> Failure {
    let message = format!(
        "the turn was ended because nothing more of it can be stored: {why}; free space on the disk \
         that holds the threads, then go on with a new turn"
    );
    Failure::new(FailureKind::StorageFull, message)
}
