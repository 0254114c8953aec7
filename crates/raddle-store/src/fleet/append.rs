//! One append: one statement, which has an effect only if the thread's row is as expected, or a part of
//! a batch of the node log.

mod batch;
mod gather;

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Class, Event, Record, RecordBody, Seq, ThreadId};

use super::SharedJournal;
use super::durability::HAS_STANDBY;
use super::error::{self, QueryFailure};
use super::node_log;
use super::rebuild;
use super::state_cache::RowWrite;
use super::statement::Statement;
use super::thread_state::{self, RowState, ThreadState, as_i64};
use crate::records::are_ascending;
use batch::AppendBatch;

/// Maximum number of attempts while other nodes take the thread or settle a doubt.
const ATTEMPTS_MAX: usize = 5;

/// Maximum number of a record.
const SEQ_MAX: Seq = Seq(i64::MAX as u64);

/// Appends records to a thread.
pub(super) async fn append(
    journal: &SharedJournal,
    thread: ThreadId,
    after: Seq,
    records: &[Record],
    class: Class,
) -> Result<Seq, AppendError> {
    if journal.threads.is_in_doubt(thread) {
        let settled = thread_state::settle(journal, thread).await;
        settled.map_err(error::repeatable)?;
    }
    if !are_ascending(after, records) {
        return Err(AppendError::Conflict);
    }
    if class == Class::Process
        && let Some(result) = gather::gather(journal, thread, after, records).await
    {
        return result;
    }
    if records.iter().any(is_owned) {
        let begun = node_log::begin(journal, thread).await;
        begun.map_err(error::repeatable)?;
    }
    let begun = begin_write(journal, thread).await;
    let mut write = begun.map_err(error::repeatable)?;
    let position = write.position;
    let mut expected = write.state.take();
    // Without records there is no statement that would compare the cached state.
    expected.take_if(|it| it.newest() != after || records.is_empty());
    for _ in 0..ATTEMPTS_MAX {
        let state = match expected.take() {
            Some(cached) => cached,
            None => load(journal, thread).await?,
        };
        if state.newest() != after {
            return Err(AppendError::Conflict);
        }
        let Some(last) = records.last() else {
            return write_nothing(journal, thread, after, class).await;
        };
        if state.writer.is_some_and(|writer| writer != position.log) {
            // The other log may have deltas after this head at any time.
            return Err(AppendError::Conflict);
        }
        let batch = AppendBatch::new(journal, thread, &state, records, position).await?;
        if run(journal, thread, &state, &batch).await? {
            journal.threads.put(thread, batch.state);
            journal.node_log.release(thread, position);
            return Ok(last.seq);
        }
        // Another node took the thread or wrote to it, or the id began anew.
        journal.threads.remove(thread);
        let current = load(journal, thread).await?;
        if state.row_state == RowState::Live
            && (current.log, current.link) != (state.log, state.link)
        {
            // The head may be the same, but not of the records that this writer knows.
            return Err(AppendError::Conflict);
        }
        expected = Some(current);
    }
    let what = "other nodes take the thread again and again".to_owned();
    Err(AppendError::Unavailable(what))
}

fn is_owned(record: &Record) -> bool {
    matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::Owned(_)))
}

/// Begins a write to the row of a thread, once no deltas of it are on their way to the node log.
pub(super) async fn begin_write(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<RowWrite<'_>, QueryFailure> {
    let limit = journal.connections.statement_max();
    loop {
        journal.node_log.resolve(thread, limit).await?;
        if let Some(write) = journal.threads.begin_write(thread, &journal.node_log) {
            return Ok(write);
        }
    }
}

/// Copies the deltas that only the node log has to rows of the thread.
pub(super) async fn flush(journal: &SharedJournal, thread: ThreadId) -> Result<(), AppendError> {
    if journal.threads.is_in_doubt(thread) {
        let settled = thread_state::settle(journal, thread).await;
        settled.map_err(error::repeatable)?;
    }
    // A delta on its way may still fail.
    let limit = journal.connections.statement_max();
    let (cached, position) = loop {
        let resolved = journal.node_log.resolve(thread, limit).await;
        resolved.map_err(error::repeatable)?;
        if let Some(resolved) = journal.threads.resolved(thread, &journal.node_log) {
            break resolved;
        }
    };
    let state = match cached {
        Some(cached) => cached,
        None => load(journal, thread).await?,
    };
    let is_ours = state.row_state == RowState::Live && state.writer == Some(position.log);
    if !is_ours || state.gathered.is_empty() {
        journal.node_log.release(thread, position);
        return Ok(());
    }
    let batch = AppendBatch::new(journal, thread, &state, &[], position).await?;
    if run(journal, thread, &state, &batch).await? {
        journal.threads.flushed(thread, &state, &batch.state);
        journal.node_log.release(thread, position);
    } else {
        // Another append moved the head, or another node took the thread.
        journal.threads.remove(thread);
    }
    Ok(())
}

/// Returns the state of a thread from the database.
async fn load(journal: &SharedJournal, thread: ThreadId) -> Result<ThreadState, AppendError> {
    let loaded = rebuild::load(journal, thread).await;
    match loaded.map_err(error::repeatable)? {
        Ok(state) => Ok(state),
        Err(ReadError::Newer(what)) => Err(AppendError::Newer(what)),
        Err(damage) => Err(AppendError::ReadOnly(damage.to_string())),
    }
}

/// Runs the statement, whose commit waits for the disk and the standby, whatever its records must
/// survive: a thread's row that went back with a lost primary would have batches after a hole. Returns
/// whether it had an effect.
async fn run(
    journal: &SharedJournal,
    thread: ThreadId,
    state: &ThreadState,
    batch: &AppendBatch,
) -> Result<bool, AppendError> {
    let before = ExpectedRow::of(thread, state);
    let deltas = batch.deltas();
    let mut statement = Statement::default();
    before.fence(&mut statement, state, batch);
    batch.write(&mut statement, &deltas);
    statement.push(" SELECT 1 FROM moved");
    let connection = journal.connections.events(thread);
    let write = journal.threads.writing(thread);
    match connection.query(&statement.sql, &statement.params).await {
        Ok(rows) => {
            write.conclude();
            Ok(!rows.is_empty())
        }
        Err(QueryFailure::Lost(what)) => {
            drop(write);
            Err(AppendError::Unknown(what))
        }
        Err(failure) => {
            write.conclude();
            journal.threads.remove(thread);
            Err(error::append(failure))
        }
    }
}

/// Commits a write of the class without any row, as the health page does: it shows whether an append
/// would succeed, and costs a hundred bytes of the write-ahead log. Measures the durability too. Returns
/// the head.
async fn write_nothing(
    journal: &SharedJournal,
    thread: ThreadId,
    head: Seq,
    class: Class,
) -> Result<Seq, AppendError> {
    let sql =
        format!("SELECT {HAS_STANDBY}, pg_logical_emit_message(true, 'raddle', ''::text)::text");
    let connection = match class {
        Class::Power => journal.connections.events(thread),
        Class::Process => journal.connections.deltas(),
    };
    let written = connection.query(&sql, &[]).await;
    let rows = written.map_err(error::repeatable)?;
    journal.durability.set(&rows);
    Ok(head)
}

/// Parameters that identify the expected row.
struct ExpectedRow<'a> {
    thread: ThreadId,
    head: i64,
    link: &'a [u8],
}

impl<'a> ExpectedRow<'a> {
    fn of(thread: ThreadId, state: &'a ThreadState) -> Self {
        Self {
            thread,
            head: as_i64(state.head),
            link: &state.link,
        }
    }

    /// Adds the conditional change of the thread's row. Everything else follows from its result.
    fn fence(
        &'a self,
        statement: &mut Statement<'a>,
        state: &'a ThreadState,
        batch: &'a AppendBatch,
    ) {
        let id = statement.bind(self.thread.as_uuid());
        let log = statement.bind(&state.log);
        let fence = statement.bind(&state.fence);
        let head = statement.bind(&batch.head);
        let tail = statement.bind(&batch.tail);
        let link = statement.bind(&batch.link);
        let writer = statement.bind(&batch.state.writer);
        let owner = statement.bind(&batch.state.owner);
        let since = statement.bind(&batch.state.since);
        if state.row_state == RowState::Live {
            let (after, linked) = (statement.bind(&self.head), statement.bind(&self.link));
            statement.push(&format!(
                "WITH moved AS (
                     UPDATE threads SET head = {head}, tail = {tail}, link = {link},
                         writer = {writer}, owner = {owner}, since = {since}
                     WHERE id = {id} AND head = {after} AND log = {log} AND link = {linked}
                         AND fence = {fence} AND live
                     RETURNING log)"
            ));
        } else {
            let family = statement.bind(&state.family);
            statement.push(&format!(
                "WITH moved AS (
                     INSERT INTO threads AS t
                         (id, log, live, head, tail, link, fence, family, writer, owner, since)
                     VALUES ({id}, {log}, true, {head}, {tail}, {link}, {fence}, {family},
                         {writer}, {owner}, {since})
                     ON CONFLICT (id) DO UPDATE
                         SET log = excluded.log, live = true, head = excluded.head,
                             tail = excluded.tail, link = excluded.link, family = excluded.family,
                             writer = excluded.writer, owner = excluded.owner,
                             since = excluded.since
                         WHERE NOT t.live AND t.fence = excluded.fence
                     RETURNING log)"
            ));
        }
    }
}
