//! Appends of deltas to the node log.

use std::sync::Arc;

use raddle_core::ports::AppendError;
use raddle_core::{Record, Seq, ThreadId};

use crate::fleet::SharedJournal;
use crate::fleet::delta_row::DeltaRow;
use crate::fleet::error;
use crate::fleet::node_log::{EnqueueError, GatherOutcome, QueuedAppend};

/// Appends records to the node log. Returns `None` if they must go to the thread's rows: they are not
/// only deltas, or the log is not the one that the thread's row names.
pub(super) async fn gather(
    journal: &SharedJournal,
    thread: ThreadId,
    after: Seq,
    records: &[Record],
) -> Option<Result<Seq, AppendError>> {
    let last = records.last().filter(|last| last.seq <= super::SEQ_MAX)?;
    let log = journal.node_log.position().log;
    let key = journal.threads.gathers(thread, after, log)?;
    let rows: Vec<Arc<DeltaRow>> = DeltaRow::all(records)?.into_iter().map(Arc::new).collect();
    let (append, outcome) = QueuedAppend::new(thread, key, rows.clone());
    let enqueue = || journal.node_log.enqueue(log, append);
    match journal.threads.gather(thread, after, log, &rows, enqueue)? {
        Ok(()) => {}
        Err(EnqueueError::OtherLog) => {
            journal.threads.remove(thread);
            return Some(Err(AppendError::Conflict));
        }
        Err(EnqueueError::Busy) => return None,
        Err(EnqueueError::Full) => {
            let what = "too many deltas wait to be sent to the database".to_owned();
            return Some(Err(AppendError::Unavailable(what)));
        }
    }
    let write = journal.threads.writing(thread);
    let limit = journal.connections.statement_max();
    let outcome = tokio::time::timeout(limit, outcome).await;
    let Ok(Ok(outcome)) = outcome else {
        drop(write);
        let what = format!("the database did not store a batch of deltas within {limit:?}");
        return Some(Err(AppendError::Unknown(what)));
    };
    write.conclude();
    Some(match outcome {
        GatherOutcome::Stored => Ok(last.seq),
        GatherOutcome::Sealed => {
            journal.threads.remove(thread);
            Err(AppendError::Conflict)
        }
        GatherOutcome::Failed(failure) => {
            journal.threads.remove(thread);
            Err(error::append(failure))
        }
    })
}
