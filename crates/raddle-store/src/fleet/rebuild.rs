//! Summaries that are rebuilt from the records of their thread.

use raddle_core::ports::{ReadError, Summary};
use raddle_core::{Seq, ThreadId};

use super::SharedJournal;
use super::error::QueryFailure;
use super::read;
use super::statement::Statement;
use super::summary_row::SummaryRow;
use super::thread_state::{self, RowState, ThreadState, as_i64};

/// Bytes of records that are read at once.
const PAGE_BYTES: usize = 1 << 20;

/// Reads the state of a thread, with the summary that lists should show.
pub(super) async fn load(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<Result<ThreadState, ReadError>, QueryFailure> {
    match thread_state::load(journal, thread).await? {
        Ok(state) => summary_of(journal, thread, state).await,
        damage => Ok(damage),
    }
}

/// Completes the state of a thread whose row in the lists is missing or cannot be read, and stores
/// that row again. A thread whose records have no summary, such as a deleted one, has no row.
async fn summary_of(
    journal: &SharedJournal,
    thread: ThreadId,
    mut state: ThreadState,
) -> Result<Result<ThreadState, ReadError>, QueryFailure> {
    if state.row_state != RowState::Live || state.summary.is_some() {
        return Ok(Ok(state));
    }
    let summary = match summary_at(journal, thread, state.head).await {
        Ok(summary) => summary,
        Err(ReadError::Unavailable(what)) => return Err(QueryFailure::NotSent(what)),
        // The thread was deleted meanwhile, so no append of this state has an effect.
        Err(ReadError::NotFound) => None,
        Err(damage) => return Ok(Err(damage)),
    };
    let Some(mut summary) = summary else {
        return Ok(Ok(state));
    };
    summary.head = state.head;
    tracing::warn!(%thread, "rebuilt the list entry of a thread");
    let row = SummaryRow::new(thread, &summary);
    if let Err(failure) = store(journal, thread, &state, &row).await {
        // The next node that loads the thread repeats it.
        tracing::warn!(?failure, "the list entry of a thread was not stored");
    }
    state.summary = Some(summary);
    Ok(Ok(state))
}

/// Stores the row of a thread in the lists, unless its records have changed.
async fn store(
    journal: &SharedJournal,
    thread: ThreadId,
    state: &ThreadState,
    row: &SummaryRow,
) -> Result<(), QueryFailure> {
    let head = as_i64(state.head);
    let mut statement = Statement::default();
    let id = statement.bind(thread.as_uuid());
    let (log, at) = (statement.bind(&state.log), statement.bind(&head));
    // An append that follows waits for the lock, and replaces the row.
    let unchanged = format!(
        "FROM (SELECT 1 FROM threads WHERE id = {id} AND log = {log} AND head = {at} AND live
             FOR NO KEY UPDATE) AS unchanged"
    );
    row.write(&mut statement, &unchanged);
    let connection = journal.connections.events(thread);
    connection.query(&statement.sql, &statement.params).await?;
    Ok(())
}

/// Returns the summary of a thread at a record. The records before it never change.
pub(super) async fn summary_at(
    journal: &SharedJournal,
    thread: ThreadId,
    at: Seq,
) -> Result<Option<Summary>, ReadError> {
    let base = read::base(journal, thread, Some(at)).await?;
    let mut after = base.as_ref().map_or(Seq::ZERO, |it| it.thread.head());
    let mut summary = base.and_then(|base| Summary::of(&base.thread));
    loop {
        let page = read::records(journal, thread, after, PAGE_BYTES).await?;
        for record in page.iter().take_while(|it| it.seq <= at) {
            Summary::fold(&mut summary, record);
        }
        match page.last() {
            Some(last) if last.seq < at => after = last.seq,
            _ => return Ok(summary),
        }
    }
}
