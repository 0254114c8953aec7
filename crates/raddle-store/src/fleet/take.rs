//! How a node takes a thread: it seals the log of the former node, and copies the deltas that only
//! this log has to rows of the thread.

use raddle_core::{Seq, ThreadId};
use uuid::Uuid;

use super::SharedJournal;
use super::append;
use super::delta_row::DeltaColumns;
use super::error::QueryFailure;
use super::node_log;
use super::statement::Statement;
use super::thread_state::{self, RowState, ThreadState, as_i64, seq};

/// Maximum number of attempts while other nodes write to the thread.
const ATTEMPTS_MAX: usize = 8;

/// Takes a thread from the node that owned it, if it is still the owner: no statement of another node
/// that is on its way has an effect afterwards. The commit makes everything durable that the head
/// names.
pub(super) async fn take(
    journal: &SharedJournal,
    thread: ThreadId,
    former: Option<&str>,
) -> Result<Seq, QueryFailure> {
    if journal.threads.is_in_doubt(thread) {
        thread_state::settle(journal, thread).await?;
    }
    let _write = append::begin_write(journal, thread).await?;
    for _ in 0..ATTEMPTS_MAX {
        if let Some(head) = take_ungathered(journal, thread).await? {
            return Ok(head);
        }
        let stored = journal.node_log.stored();
        let mut state = thread_state::load_intact(journal, thread).await?;
        if state.row_state != RowState::Live {
            return Ok(Seq::ZERO);
        }
        let Some(log) = state.writer else {
            continue;
        };
        if log == stored.log {
            if state.batches < stored.newest {
                // The database lost batches, or the host that was read is no longer the primary.
                let limit = journal.connections.statement_max();
                journal.node_log.compare(limit).await?;
                continue;
            }
        } else {
            let is_former = former.is_some() && former == state.owner.as_deref();
            if is_former {
                node_log::seal(journal, thread, log).await?;
            } else if !node_log::is_sealed(journal, log).await? {
                // Another node took it first, and its records show that.
                return Ok(state.newest());
            }
            // A batch may have been stored before the seal.
            state = thread_state::load_intact(journal, thread).await?;
            if state.writer != Some(log) {
                continue;
            }
        }
        if copy(journal, thread, &state, stored.log).await? {
            journal.node_log.forget(thread);
            return Ok(state.newest());
        }
    }
    let what = "other nodes write to the thread again and again".to_owned();
    Err(QueryFailure::NotSent(what))
}

/// Ends the use of a sealed log by a thread, as [`take`] does.
pub(super) async fn release(
    journal: &SharedJournal,
    thread: ThreadId,
    log: Uuid,
) -> Result<(), QueryFailure> {
    let _write = append::begin_write(journal, thread).await?;
    let own = journal.node_log.position().log;
    for _ in 0..ATTEMPTS_MAX {
        let state = thread_state::load_intact(journal, thread).await?;
        if state.writer != Some(log) {
            return Ok(());
        }
        if copy(journal, thread, &state, own).await? {
            journal.node_log.forget(thread);
            return Ok(());
        }
    }
    let what = "other nodes write to the thread again and again".to_owned();
    Err(QueryFailure::NotSent(what))
}

/// Takes a thread of which no node log has deltas.
async fn take_ungathered(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<Option<Seq>, QueryFailure> {
    let sql = "UPDATE threads SET fence = fence + 1 WHERE id = $1 AND live AND writer IS NULL
               RETURNING head";
    let connection = journal.connections.events(thread);
    let rows = connection.query(sql, &[thread.as_uuid()]).await?;
    journal.threads.remove(thread);
    Ok(rows.first().map(|row| seq(row.get(0))))
}

/// Copies the gathered deltas to rows of the thread, and ends its use of the log. Returns false if
/// the thread has changed, or if the log of another node is not sealed with the batches that were
/// read: they may have been read on a host that is no longer the primary.
async fn copy(
    journal: &SharedJournal,
    thread: ThreadId,
    state: &ThreadState,
    own: Uuid,
) -> Result<bool, QueryFailure> {
    let mut statement = Statement::default();
    let id = statement.bind(thread.as_uuid());
    let (log, fence) = (statement.bind(&state.log), statement.bind(&state.fence));
    let (before, after) = (as_i64(state.head), as_i64(state.newest()));
    let (before, after) = (statement.bind(&before), statement.bind(&after));
    let (writer, own) = (statement.bind(&state.writer), statement.bind(&own));
    let batches = statement.bind(&state.batches);
    statement.push(&format!(
        "WITH moved AS (
             UPDATE threads SET head = {after}, fence = fence + 1, writer = NULL, owner = NULL
             WHERE id = {id} AND log = {log} AND head = {before} AND fence = {fence} AND live
                 AND writer = {writer} AND (writer = {own} OR NOT EXISTS (
                     SELECT 1 FROM node_logs l
                     WHERE l.id = {writer} AND NOT (l.sealed AND l.n = {batches}::bigint)))
             RETURNING log)"
    ));
    let columns: DeltaColumns<'_> = state.gathered.iter().map(|row| &**row).collect();
    columns.write(&mut statement);
    statement.push(" SELECT 1 FROM moved");
    let connection = journal.connections.events(thread);
    let rows = connection.query(&statement.sql, &statement.params).await?;
    journal.threads.remove(thread);
    Ok(!rows.is_empty())
}
