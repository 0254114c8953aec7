//! A journal without room: the turn that runs ends as failed, and that is the last thing stored of it.

use raddle_core::ports::AppendError;
use raddle_core::{Epoch, Failure, FailureKind, Tail, Thread, WriterEnd};

use tokio::time::Instant;

use super::{JOURNAL_TIMEOUT, RETRY_DELAY, Task};
use crate::open::open;

impl Task {
    /// Takes the thread anew after an append that found no room. A turn that runs in it ends: the journal
    /// holds room back for this. Returns whether the task goes on.
    ///
    /// The append that failed is part of the thread in memory, so the thread is folded again from what
    /// is stored. Subscribers stay: they have received all of that and nothing else.
    pub(super) async fn fail_turn(&mut self, ended: &WriterEnd) -> bool {
        if let Some(failure) = self.owner.fails() {
            // The end of the turn was not stored either. The next opening in this process stores it.
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
        let stored = self.owner.stored();
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
            return self.go_on(thread, tail).await;
        };
        tracing::warn!(thread = %self.id, %turn, "the journal is full: the turn ends as failed");
        // A command of this turn may be filling the disk.
        self.end_with(turn);
        for (_, work) in std::mem::take(&mut self.work) {
            work.abort();
        }
        self.stops.clear();
        let node = self.shared.node(Epoch(thread.epoch().0 + 1));
        let now = self.shared.now();
        self.owner.fail_turn(thread, node, failure, now, tail);
        self.unavailable_since = None;
        self.released = false;
        for message in std::mem::take(&mut self.late) {
            self.offer(message);
        }
        true
    }

    /// Goes on with a thread in which no turn runs: what was asked is refused, and whoever listens keeps listening.
    /// One that is being left is left. Returns whether the task goes on.
    async fn go_on(&mut self, thread: Thread, tail: Tail) -> bool {
        if self.closed || self.unloading.is_some() {
            return false;
        }
        self.owner.reset_to_stored(thread, tail);
        for message in std::mem::take(&mut self.late) {
            self.offer(message);
        }
        // Without this pause, work that the thread begins by itself is retried at once.
        self.during(tokio::time::sleep(RETRY_DELAY)).await;
        true
    }

    /// Waits before the end of the turn is stored again, and unloads the thread if there was no room for
    /// too long. A thread that was only just opened is unloaded at once: no client waits for its turn.
    pub(super) async fn wait_for_space(&mut self) {
        let since = *self.unavailable_since.get_or_insert_with(Instant::now);
        if self.owner.stored() > self.initial_head && since.elapsed() < JOURNAL_TIMEOUT {
            return self.during(tokio::time::sleep(RETRY_DELAY)).await;
        }
        let why = self.failed.as_ref().map(ToString::to_string);
        let outs = self.owner.give_up(why.unwrap_or_default());
        self.act(outs);
    }
}

fn storage_full(why: &str) -> Failure {
    let message = format!(
        "the turn was ended because nothing more of it can be stored: {why}; make room on the disk \
         that holds the threads, then go on with a new turn"
    );
    Failure::new(FailureKind::StorageFull, message)
}
