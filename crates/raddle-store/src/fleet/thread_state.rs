//! The row of a thread, and how a node settles a doubt about it.

use std::sync::Arc;

use raddle_core::ports::{ReadError, Summary};
use raddle_core::{Seq, ThreadId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::chain::{self, Link};
use super::delta_row::{DeltaRow, gathered_of_t, lane};
use super::error::{self, QueryFailure};
use super::summary_row;

/// Everything that an append relies on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThreadState {
    pub(super) row_state: RowState,
    /// Key of its own rows.
    pub(super) log: Uuid,
    /// Head in the row: the newest record that no node log has.
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
    /// Node log that may have deltas after the head.
    pub(super) writer: Option<Uuid>,
    /// Node that appends to that log.
    pub(super) owner: Option<String>,
    /// Batches of that log up to this one have no deltas after the head.
    pub(super) since: i64,
    /// Newest batch of that log when the row was read.
    pub(super) batches: i64,
    /// Deltas after the head, which only the node log has, ascending.
    pub(super) gathered: Vec<Arc<DeltaRow>>,
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

/// Maximum number of ids that one statement reads.
const IDS_MAX: i64 = 1000;

const COLUMNS: &str = "t.log, t.live, t.head, t.tail, t.link, t.fence, t.family, t.writer, t.owner, \
                       t.since, (SELECT l.n FROM node_logs l WHERE l.id = t.writer)";

/// Index of the column after those of the row.
const SUMMARY: usize = 11;

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
            writer: None,
            owner: None,
            since: 0,
            batches: 0,
            gathered: Vec::new(),
            summary: None,
        }
    }

    /// Newest record.
    pub(super) fn newest(&self) -> Seq {
        self.gathered.last().map_or(self.head, |row| row.seq())
    }

    /// Whether deltas after a record can go to a node log.
    pub(super) fn gathers(&self, after: Seq, log: Uuid) -> bool {
        self.row_state == RowState::Live && self.writer == Some(log) && self.newest() == after
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
                writer: row.try_get(7)?,
                owner: row.try_get(8)?,
                since: row.try_get(9)?,
                batches: row.try_get::<_, Option<i64>>(10)?.unwrap_or(0),
                gathered: Vec::new(),
                summary: None,
            }))
        };
        let damaged = || error::corrupt(Seq::ZERO, "the thread's row cannot be read");
        let mut state = read().map_err(|_| damaged())?.ok_or_else(damaged)?;
        let body: Option<&str> = row.try_get(SUMMARY).map_err(|_| damaged())?;
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

/// Reads the state of a thread, with everything that this node appended.
pub(super) async fn load(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<Result<ThreadState, ReadError>, QueryFailure> {
    // The database may have lost batches that are still in memory.
    let limit = journal.connections.statement_max();
    journal.node_log.confirm(thread, limit).await?;
    let sql = format!(
        "WITH t AS (SELECT * FROM threads WHERE id = $1)
         SELECT {COLUMNS}, s.body, d.* FROM t LEFT JOIN summaries s ON s.id = t.id
         LEFT JOIN ({}) AS d ON true ORDER BY d.seq",
        gathered_of_t("$2")
    );
    let rows = journal
        .connections
        .reads()
        .query(&sql, &[thread.as_uuid(), &lane(thread)])
        .await?;
    let Some(first) = rows.first() else {
        return Ok(Ok(ThreadState::missing(thread)));
    };
    let state = ThreadState::of_row(thread, first).and_then(|mut state| {
        for row in &rows {
            let delta = DeltaRow::of_row(row, SUMMARY + 1);
            let delta = delta
                .map_err(|_| error::corrupt(state.newest().next(), "its text cannot be read"))?;
            state.gathered.extend(delta.map(Arc::new));
        }
        Ok(state)
    });
    Ok(state)
}

/// Reads the state of a thread that damage makes unusable.
pub(super) async fn load_intact(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<ThreadState, QueryFailure> {
    let state = load(journal, thread).await?;
    state.map_err(|damage| QueryFailure::Unusable(damage.to_string()))
}

/// Returns ids of threads after another one, ascending.
pub(super) async fn ids(
    journal: &SharedJournal,
    after: Option<ThreadId>,
) -> Result<Vec<ThreadId>, QueryFailure> {
    let sql = "SELECT id FROM threads WHERE live AND id > $1 ORDER BY id LIMIT $2";
    let after = after.map_or(Uuid::nil(), |it| *it.as_uuid());
    let rows = journal
        .connections
        .reads()
        .query(sql, &[&after, &IDS_MAX])
        .await?;
    let ids = rows.iter().map(|row| ThreadId::from(row.get::<_, Uuid>(0)));
    Ok(ids.collect())
}

/// Returns the head of a thread. A read does not settle a doubt: a commit that waits for the standby
/// no longer is visible, and may vanish with the primary.
pub(super) async fn head(journal: &SharedJournal, thread: ThreadId) -> Result<Seq, QueryFailure> {
    if journal.threads.is_in_doubt(thread) {
        return settle(journal, thread).await;
    }
    let sql = format!(
        "WITH t AS (SELECT log, head, writer, since FROM threads WHERE id = $1 AND live)
         SELECT greatest(t.head, (SELECT max(d.seq) FROM ({}) AS d)) FROM t",
        gathered_of_t("$2")
    );
    let rows = journal
        .connections
        .reads()
        .query(&sql, &[thread.as_uuid(), &lane(thread)])
        .await?;
    Ok(rows.first().map_or(Seq::ZERO, |row| seq(row.get(0))))
}

/// Settles a doubt by a write. It waits for a statement that is running, and one that is still on
/// its way has no effect afterwards. Its commit covers everything that it saw.
pub(super) async fn settle(journal: &SharedJournal, thread: ThreadId) -> Result<Seq, QueryFailure> {
    let doubts = journal.threads.doubts();
    let limit = journal.connections.statement_max();
    journal.node_log.resolve(thread, limit).await?;
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
    let mut head = state.head;
    if state.writer.is_some() {
        head = load_intact(journal, thread).await?.newest();
    }
    // The next append reads the row: the summary is of the statement's snapshot, which may be before
    // the row's.
    journal.threads.settle(thread, doubts);
    Ok(head)
}
