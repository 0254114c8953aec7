//! Rows of deltas, in the table of a thread or in a batch of a node log.

use raddle_core::ports::AppendError;
use raddle_core::{Delta, Record, RecordBody, Seq, ThreadId};
use tokio_postgres::Row;

use super::statement::{Statement, storable};
use super::thread_state::{as_i64, seq};

/// Number of lanes of a batch.
pub(super) const LANES: usize = 16;

/// Returns the lane of a thread in every node log.
pub(super) fn lane(thread: ThreadId) -> i16 {
    let [.., last] = *thread.as_uuid().as_bytes();
    i16::from(last) % LANES as i16
}

/// Deltas of a thread that only a node log has, as a SQL query from the common table expression `t`,
/// which has the columns `log`, `head`, `writer` and `since` of the thread. `lane` is a parameter.
///
/// Deltas up to the head count no longer: an append that moved the head settled them, or copied them
/// to the table `deltas`.
pub(super) fn gathered_of_t(lane: &str) -> String {
    format!(
        "SELECT it.seq, it.at, it.item, it.bytes, it.body FROM t
         JOIN node_batches b ON b.node_log = t.writer AND b.lane = {lane}::smallint
             AND b.n > t.since
         CROSS JOIN LATERAL unnest(b.logs, b.seqs, b.ats, b.items, b.sizes, b.bodies)
             AS it(log, seq, at, item, bytes, body)
         WHERE it.log = t.log AND it.seq > t.head"
    )
}

/// A delta as columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeltaRow {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) item: String,
    /// Length of its JSON.
    pub(super) bytes: i32,
    pub(super) body: Vec<u8>,
}

/// Bytes that a row needs besides its item and its body.
const ROW_BYTES: usize = 64;

impl DeltaRow {
    /// Encodes a delta.
    pub(super) fn new(record: &Record, delta: &Delta) -> Result<Self, AppendError> {
        let body = serde_json::to_vec(delta).map_err(|error| {
            AppendError::Unavailable(format!("a record cannot be encoded: {error}"))
        })?;
        Ok(Self {
            seq: as_i64(record.seq),
            at: record.at.0,
            item: storable(delta.item.as_str()),
            bytes: i32::try_from(body.len()).unwrap_or(i32::MAX),
            body,
        })
    }

    /// Encodes records; `None` unless all of them are deltas.
    pub(super) fn all(records: &[Record]) -> Option<Vec<Self>> {
        let rows = records.iter().map(|record| match &record.body {
            RecordBody::Delta(delta) => Self::new(record, delta).ok(),
            RecordBody::Event(_) => None,
        });
        rows.collect()
    }

    /// Decodes the columns from an index on; `None` for NULL.
    pub(super) fn of_row(row: &Row, from: usize) -> Result<Option<Self>, tokio_postgres::Error> {
        let Some(seq) = row.try_get(from)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            seq,
            at: row.try_get(from + 1)?,
            item: row.try_get(from + 2)?,
            bytes: row.try_get(from + 3)?,
            body: row.try_get(from + 4)?,
        }))
    }

    pub(super) fn seq(&self) -> Seq {
        seq(self.seq)
    }

    /// Returns how much memory the row needs, about.
    pub(super) fn weight(&self) -> usize {
        ROW_BYTES + self.item.len() + self.body.len()
    }
}

/// Deltas as columns, for `unnest`.
#[derive(Debug, Default)]
pub(super) struct DeltaColumns<'a> {
    pub(super) seq: Vec<i64>,
    pub(super) at: Vec<i64>,
    pub(super) item: Vec<&'a str>,
    pub(super) bytes: Vec<i32>,
    pub(super) body: Vec<&'a [u8]>,
}

impl<'a> DeltaColumns<'a> {
    pub(super) fn push(&mut self, row: &'a DeltaRow) {
        self.seq.push(row.seq);
        self.at.push(row.at);
        self.item.push(&row.item);
        self.bytes.push(row.bytes);
        self.body.push(&row.body);
    }

    /// Adds the insertion into the table `deltas` to a statement, for the log of the row `moved`.
    pub(super) fn write(&'a self, statement: &mut Statement<'a>) {
        if self.seq.is_empty() {
            return;
        }
        let (seq, at) = (statement.bind(&self.seq), statement.bind(&self.at));
        let (item, bytes) = (statement.bind(&self.item), statement.bind(&self.bytes));
        let body = statement.bind(&self.body);
        statement.push(&format!(
            ", pieces AS (INSERT INTO deltas (log, seq, at, item, bytes, body)
                 SELECT moved.log, it.* FROM moved, unnest({seq}::bigint[], {at}::bigint[],
                     {item}::text[], {bytes}::integer[], {body}::bytea[]) AS it)"
        ));
    }
}

impl<'a> FromIterator<&'a DeltaRow> for DeltaColumns<'a> {
    fn from_iter<T: IntoIterator<Item = &'a DeltaRow>>(rows: T) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.push(row);
        }
        columns
    }
}
