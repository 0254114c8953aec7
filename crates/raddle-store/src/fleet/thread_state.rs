//! The row of a thread, and how a node takes a thread or settles a doubt about it.

use raddle_core::ports::{ReadError, Summary};
use raddle_core::{Seq, ThreadId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::FleetJournal;
use super::chain::{self, Link};
use super::error::{self, QueryFailure};
use super::rebuild;
use super::summary_row;

/// Everything that an append relies on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThreadState {
    pub(super) row_state: RowState,
    /// Key of its own rows.
    pub(super) log: Uuid,
    /// Newest record.
    pub(super) head: Seq,
    /// Newest event.
    pub(super) tail: Seq,
    /// Link of the newest event.
    pub(super) link: Link,
    /// Number that rises when a node takes the thread or settles a doubt. A statement that names an
    /// older number, and is still on its way, has no effect.
    pub(super) fence: i64,
    /// The thread from which all its forks descend.
    pub(super) family: Uuid,
    /// Summary, as lists show it.
    pub(super) summary: Option<Summary>,
}

/// Whether a thread exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    /// There is no row.
    Missing,
    /// There is a row only to settle a doubt.
    Reserved,
    /// The thread exists.
    Live,
}

const COLUMNS: &str = "t.log, t.live, t.head, t.tail, t.link, t.fence, t.family";

impl ThreadState {
    /// Returns the state of a thread without a row.
    pub(super) fn missing(thread: ThreadId) -> Self {
        let id = *thread.as_uuid();
        Self {
            row_state: RowState::Missing,
            log: Uuid::now_v7(),
            head: Seq::ZERO,
            tail: Seq::ZERO,
            link: chain::origin(id),
            fence: 0,
            family: id,
            summary: None,
        }
    }

    /// Reads the columns of a row, and its summary after them.
    fn of_row(thread: ThreadId, row: &Row) -> Result<Self, ReadError> {
        let read = || -> Result<Option<Self>, tokio_postgres::Error> {
            let live: bool = row.try_get(1)?;
            if !live {
                let fence = row.try_get(5)?;
                return Ok(Some(Self {
                    row_state: RowState::Reserved,
                    fence,
                    ..Self::missing(thread)
                }));
            }
            let link: &[u8] = row.try_get(4)?;
            let Ok(link) = Link::try_from(link) else {
                return Ok(None);
            };
            Ok(Some(Self {
                row_state: RowState::Live,
                log: row.try_get(0)?,
                head: seq(row.try_get(2)?),
                tail: seq(row.try_get(3)?),
                link,
                fence: row.try_get(5)?,
                family: row.try_get(6)?,
                summary: None,
            }))
        };
        let damaged = || error::corrupt(Seq::ZERO, "the thread's row cannot be read");
        let mut state = read().map_err(|_| damaged())?.ok_or_else(damaged)?;
        let body: Option<&str> = row.try_get(7).map_err(|_| damaged())?;
        if state.row_state == RowState::Live
            && let Some(body) = body
        {
            // One that cannot be read is rebuilt from the records.
            state.summary = summary_row::parse(body, state.head).ok();
        }
        Ok(state)
    }
}

/// Returns a number as a column holds it.
pub(super) fn as_i64(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// Returns the number that a column holds.
pub(super) fn seq(number: i64) -> Seq {
    Seq(number.unsigned_abs())
}

/// Reads the state of a thread.
pub(super) async fn load(
    journal: &FleetJournal,
    thread: ThreadId,
) -> Result<Result<ThreadState, ReadError>, QueryFailure> {
    let sql = format!(
        "SELECT {COLUMNS}, s.body FROM threads t LEFT JOIN summaries s ON s.id = t.id
         WHERE t.id = $1"
    );
    let rows = journal
        .connections
        .reads()
        .query(&sql, &[thread.as_uuid()])
        .await?;
    let state = rows.first().map_or_else(
        || Ok(ThreadState::missing(thread)),
        |row| ThreadState::of_row(thread, row),
    );
    match state {
        Ok(state) => rebuild::summary_of(journal, thread, state).await,
        damage => Ok(damage),
    }
}

/// Returns the head of a thread. A read does not settle a doubt: a commit that waits for the standby
/// no longer is visible, and may vanish with the primary.
pub(super) async fn head(journal: &FleetJournal, thread: ThreadId) -> Result<Seq, QueryFailure> {
    if journal.threads.is_in_doubt(thread) {
        return settle(journal, thread).await;
    }
    let sql = "SELECT head FROM threads WHERE id = $1 AND live";
    let rows = journal
        .connections
        .reads()
        .query(sql, &[thread.as_uuid()])
        .await?;
    Ok(rows.first().map_or(Seq::ZERO, |row| seq(row.get(0))))
}

/// Takes a thread: no statement of another node that is on its way has an effect afterwards. The
/// commit makes everything durable that the head names.
pub(super) async fn take(journal: &FleetJournal, thread: ThreadId) -> Result<Seq, QueryFailure> {
    if journal.threads.is_in_doubt(thread) {
        return settle(journal, thread).await;
    }
    let sql = "UPDATE threads SET fence = fence + 1 WHERE id = $1 AND live RETURNING head";
    let connection = journal.connections.events(thread);
    let rows = connection.query(sql, &[thread.as_uuid()]).await?;
    journal.threads.remove(thread);
    Ok(rows.first().map_or(Seq::ZERO, |row| seq(row.get(0))))
}

/// Settles a doubt by a write. It waits for a statement that is running, and one that is still on
/// its way has no effect afterwards. Its commit covers everything that it saw.
pub(super) async fn settle(journal: &FleetJournal, thread: ThreadId) -> Result<Seq, QueryFailure> {
    let doubts = journal.threads.doubts();
    let reserved = ThreadState::missing(thread);
    let sql = format!(
        "INSERT INTO threads AS t (id, log, live, head, tail, link, fence, family)
         VALUES ($1, $2, false, 0, 0, $3, 1, $1)
         ON CONFLICT (id) DO UPDATE SET fence = t.fence + 1
         RETURNING {COLUMNS}, (SELECT body FROM summaries WHERE id = $1)"
    );
    let link = reserved.link.as_slice();
    let connection = journal.connections.events(thread);
    let rows = connection
        .query(&sql, &[thread.as_uuid(), &reserved.log, &link])
        .await;
    let rows = rows?;
    let row = rows.first().ok_or_else(|| {
        QueryFailure::NotSent("the database returned no row for a thread".to_owned())
    })?;
    let state = ThreadState::of_row(thread, row);
    let state = state.map_err(|error| QueryFailure::Unusable(error.to_string()))?;
    // The next append reads the row: the summary is of the statement's snapshot, which may be before
    // the row's.
    journal.threads.settle(thread, doubts);
    Ok(state.head)
}
