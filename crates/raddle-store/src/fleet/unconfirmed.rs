//! Appends that the database may still lose.
//!
//! An event that need not survive the loss of power, and the copy of gathered text to rows, commit
//! without waiting for the disk or a standby. A change of the primary can lose such a commit after it
//! was acknowledged. So the node keeps these appends in memory until a commit that waits has seen the
//! thread's row. If the row is as before one of them, they are sent again, as the node log does with
//! batches. Until then the thread also holds its batches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::{Class, Seq, ThreadId};
use uuid::Uuid;

use super::SharedJournal;
use super::append::{self, AppendBatch};
use super::error::QueryFailure;
use super::node_log::LogPosition;
use super::thread_state::{self, RowState, ThreadState, as_i64};

/// Maximum size of the appends that are kept. Beyond it, appends wait for their commit.
const BYTES_MAX: usize = 16 << 20;

/// Maximum number of threads whose rows one statement looks at.
const THREADS_MAX: usize = 256;

/// An append whose commit did not wait.
#[derive(Debug)]
pub(super) struct UnconfirmedAppend {
    /// State of the row before it.
    before: ThreadState,
    batch: AppendBatch,
    /// Batches up to this one are not needed after it.
    position: LogPosition,
    bytes: usize,
}

impl UnconfirmedAppend {
    pub(super) fn new(before: &ThreadState, batch: AppendBatch, position: LogPosition) -> Self {
        let before = ThreadState {
            gathered: Vec::new(),
            summary: None,
            ..before.clone()
        };
        let bytes = batch.weight();
        Self {
            before,
            batch,
            position,
            bytes,
        }
    }

    /// Key of the thread's rows, and its head after the append.
    fn row(&self) -> (Uuid, Seq) {
        (self.batch.state.log, self.batch.state.head)
    }

    /// Whether the append follows a row.
    fn follows(&self, row: &ThreadState) -> bool {
        let before = &self.before;
        before.row_state == RowState::Live
            && row.row_state == RowState::Live
            && (before.log, before.head, before.link) == (row.log, row.head, row.link)
            && before.writer == row.writer
    }
}

/// The appends of this node that the database may still lose, in the order of each thread.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedAppends {
    inner: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    threads: HashMap<ThreadId, Vec<Arc<UnconfirmedAppend>>>,
    bytes: usize,
}

impl UnconfirmedAppends {
    /// Returns the class as which an append must commit: as there are too many that did not wait, it
    /// may have to.
    pub(super) fn class(&self, class: Class) -> Class {
        match self.inner().bytes < BYTES_MAX {
            true => class,
            false => Class::Power,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inner().threads.is_empty()
    }

    /// Keeps an append. Returns whether it is the only one.
    pub(super) fn push(&self, thread: ThreadId, append: UnconfirmedAppend) -> bool {
        let mut inner = self.inner();
        let is_only = inner.threads.is_empty();
        inner.bytes += append.bytes;
        let append = Arc::new(append);
        let (log, head) = append.row();
        let former = inner.threads.remove(&thread).unwrap_or_default();
        // Those of a thread that had the id before do not count any more.
        let (mut appends, gone): (Vec<_>, Vec<_>) =
            former.into_iter().partition(|it| it.row().0 == log);
        inner.bytes -= gone.iter().map(|it| it.bytes).sum::<usize>();
        // A flush and an append learn of their commits in any order.
        let at = appends.partition_point(|it| it.row().1 <= head);
        appends.insert(at, append);
        inner.threads.insert(thread, appends);
        is_only
    }

    /// Whether the database may lose an append of a thread.
    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.inner().threads.contains_key(&thread)
    }

    /// Forgets all appends of a thread: they do not count any more.
    pub(super) fn forget(&self, thread: ThreadId) {
        self.confirm(thread, Seq(u64::MAX));
    }

    /// Forgets the appends of a thread up to a head, which the database keeps.
    pub(super) fn confirm(&self, thread: ThreadId, head: Seq) {
        let mut inner = self.inner();
        let appends = inner.threads.remove(&thread).unwrap_or_default();
        let (kept, later): (Vec<_>, Vec<_>) =
            appends.into_iter().partition(|it| it.row().1 <= head);
        inner.bytes -= kept.iter().map(|it| it.bytes).sum::<usize>();
        if !later.is_empty() {
            inner.threads.insert(thread, later);
        }
    }

    fn of(&self, thread: ThreadId) -> Vec<Arc<UnconfirmedAppend>> {
        self.inner()
            .threads
            .get(&thread)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the newest append of some threads.
    fn newest(&self) -> Vec<(ThreadId, Arc<UnconfirmedAppend>)> {
        let inner = self.inner();
        let newest = |(thread, appends): (&ThreadId, &Vec<Arc<UnconfirmedAppend>>)| {
            Some((*thread, Arc::clone(appends.last()?)))
        };
        inner
            .threads
            .iter()
            .filter_map(newest)
            .take(THREADS_MAX)
            .collect()
    }

    fn inner(&self) -> MutexGuard<'_, Kept> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits a statement that waits for the disk and the standby, and has seen the rows of threads: what
/// it saw is kept. Sends the appends again that the database lost.
pub(super) async fn confirm(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let appends = journal.unconfirmed.newest();
    let Some((first, _)) = appends.first() else {
        return Ok(());
    };
    // Both are of one snapshot, and the message makes the commit one that waits.
    let sql = "SELECT t.log, t.head, mark.lsn
               FROM (SELECT pg_logical_emit_message(true, 'raddle', '')::text AS lsn) AS mark
               CROSS JOIN unnest($1::uuid[]) WITH ORDINALITY AS it(id, place)
               LEFT JOIN threads t ON t.id = it.id AND t.live
               ORDER BY it.place";
    let ids: Vec<Uuid> = appends.iter().map(|(id, _)| *id.as_uuid()).collect();
    let connection = journal.connections.events(*first);
    let rows = connection.query(sql, &[&ids]).await?;
    for ((thread, append), row) in appends.into_iter().zip(&rows) {
        let row: Option<(Uuid, i64)> = row.get::<_, Option<_>>(0).zip(row.get(1));
        let (key, head) = append.row();
        // A thread that is gone, or that began anew, needs none of this either.
        let is_lost = row.is_some_and(|(log, at)| log == key && at < as_i64(head));
        if is_lost {
            // One that is damaged does not keep the others.
            let loaded = thread_state::load(journal, thread).await?;
            let is_restored = loaded.is_ok_and(|it| it.log != key || it.head >= head);
            if !is_restored {
                tracing::warn!(%thread, "the database lost an append, and it cannot be sent again");
                // The next append looks at the row.
                journal.threads.remove(thread);
                journal.unconfirmed.forget(thread);
            }
            continue;
        }
        journal.node_log.release(thread, append.position);
        journal.unconfirmed.confirm(thread, head);
    }
    Ok(())
}

/// Sends the appends of a thread again that the database lost, if its row is as before one of them.
/// Returns whether the row may have changed.
pub(super) async fn restore(
    journal: &SharedJournal,
    thread: ThreadId,
    row: &ThreadState,
) -> Result<bool, QueryFailure> {
    let appends = journal.unconfirmed.of(thread);
    let lost = appends.iter().position(|append| append.follows(row));
    let Some(lost) = lost else {
        return Ok(false);
    };
    for append in &appends[lost..] {
        let before = ThreadState {
            fence: row.fence,
            ..append.before.clone()
        };
        let sent = append::run(journal, thread, &before, &append.batch, Class::Power).await;
        let sent = sent.map_err(|error| QueryFailure::NotSent(error.to_string()))?;
        if !sent {
            // Another node has taken the thread, or this one has sent them meanwhile.
            return Ok(true);
        }
        tracing::warn!(%thread, "the database lost an append; it was sent again");
        journal.node_log.release(thread, append.position);
        journal.unconfirmed.confirm(thread, append.row().1);
    }
    Ok(true)
}
