//! Records and bases of a thread.

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Base, Delta, Record, RecordBody, Seq, ThreadId, Timestamp};
use tokio_postgres::Row;

use super::SharedJournal;
use super::chain::{self, Link};
use super::delta_row::{gathered_of_t, lane};
use super::error::{self, corrupt};
use super::event_row;
use super::segments::OF_T;
use super::thread_state::{RowState, as_i64, seq};

/// Maximum number of records that one statement reads from each segment.
const ROWS_MAX: i64 = 1024;

/// Maximum number of bytes that one statement reads, unless a single record is longer.
const BYTES_MAX: usize = 16 << 20;

/// Weight of a delta without its text, so that a page of short deltas is not too long.
const DELTA_BYTES: usize = 100;

/// Compression level of a base.
const LEVEL: i32 = 1;

/// Returns the records after a number.
pub(super) async fn records(
    journal: &SharedJournal,
    thread: ThreadId,
    after: Seq,
    bytes_max: usize,
) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    let mut bytes = 0;
    let mut after = after;
    let mut may_repeat = true;
    loop {
        let remaining = bytes_max.saturating_sub(bytes);
        if !records.is_empty() && remaining == 0 {
            return Ok(records);
        }
        let page = page(journal, thread, after, remaining, records.is_empty()).await?;
        bytes = bytes.saturating_add(page.bytes);
        after = page.records.last().map_or(after, |last| last.seq);
        records.extend(page.records);
        if page.is_last {
            if may_repeat
                && journal
                    .threads
                    .has_stored_after(thread, after, &journal.node_log)
            {
                // The database lost batches that are still in memory.
                may_repeat = false;
                let limit = journal.connections.statement_max();
                let confirmed = journal.node_log.confirm(thread, limit).await;
                confirmed.map_err(error::read)?;
                continue;
            }
            return Ok(records);
        }
    }
}

/// Records of one statement.
struct RecordPage {
    records: Vec<Record>,
    bytes: usize,
    /// Whether the page is full or the thread ends with it.
    is_last: bool,
}

/// Reads a page by one statement, so that all of it is of one moment.
async fn page(
    journal: &SharedJournal,
    thread: ThreadId,
    after: Seq,
    bytes_max: usize,
    is_first: bool,
) -> Result<RecordPage, ReadError> {
    let gathered = gathered_of_t("$6");
    let sql = format!(
        "WITH t AS (SELECT log, head, tail, link, family, writer, since FROM threads
             WHERE id = $1 AND live),
         segment AS ({OF_T}),
         gathered AS ({gathered}),
         found AS (
             SELECT it.* FROM segment JOIN LATERAL (
                 SELECT seq, at, form, bytes, link, body FROM records
                 WHERE log = segment.log AND seq > $2
                     AND seq BETWEEN segment.first AND segment.upto
                 ORDER BY seq LIMIT $4) AS it ON true
             UNION ALL
             SELECT it.* FROM t JOIN LATERAL (
                 SELECT seq, at, NULL::smallint, bytes + {DELTA_BYTES}, NULL::bytea, body
                 FROM deltas WHERE log = t.log AND seq > $2 ORDER BY seq LIMIT $4) AS it ON true
             UNION ALL
             SELECT seq, at, NULL::smallint, bytes + {DELTA_BYTES}, NULL::bytea, body
             FROM gathered WHERE seq > $2),
         weighed AS (
             SELECT found.*, sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS total,
                 row_number() OVER (ORDER BY seq) AS place
             FROM found ORDER BY seq LIMIT $4),
         before AS (
             SELECT it.link FROM segment JOIN LATERAL (
                 SELECT seq, link FROM records
                 WHERE log = segment.log AND seq <= $2
                     AND seq BETWEEN segment.first AND segment.upto
                 ORDER BY seq DESC LIMIT 1) AS it ON true
             ORDER BY it.seq DESC LIMIT 1)
         SELECT greatest(t.head, (SELECT max(seq) FROM gathered)), t.tail, t.link, t.family, (SELECT link FROM before),
             w.seq, w.at, w.form, w.bytes, w.link, w.body, (SELECT count(*) FROM weighed)
         FROM t LEFT JOIN weighed w ON w.total <= $3 OR (w.place = 1 AND $5)
         ORDER BY w.seq"
    );
    let bytes = i64::try_from(bytes_max.min(BYTES_MAX)).unwrap_or(i64::MAX);
    // A single record may be longer than one statement reads otherwise.
    let is_first = is_first || bytes_max > BYTES_MAX;
    let id = thread.as_uuid();
    let rows = journal
        .connections
        .reads()
        .query(
            &sql,
            &[
                id,
                &as_i64(after),
                &bytes,
                &ROWS_MAX,
                &is_first,
                &lane(thread),
            ],
        )
        .await;
    let rows = rows.map_err(error::read)?;
    let first = rows.first().ok_or(ReadError::NotFound)?;
    let (head, tail) = (seq(first.get(0)), seq(first.get(1)));
    let mut chain = Chain::before(first, after)?;
    let mut page = RecordPage {
        records: Vec::with_capacity(rows.len()),
        bytes: 0,
        is_last: false,
    };
    for row in rows
        .iter()
        .filter(|row| row.get::<_, Option<i64>>(5).is_some())
    {
        page.bytes += usize::try_from(row.get::<_, i32>(8)).unwrap_or(0);
        page.records.push(chain.record(row)?);
    }
    chain.check_end(first)?;
    let found: i64 = first.get(11);
    let are_all = found < ROWS_MAX && usize::try_from(found) == Ok(page.records.len());
    if are_all && chain.last < tail {
        // An event that vanished at the end leaves no other trace.
        let what = format!("the journal should go on to record {tail}");
        return Err(corrupt(chain.last.next(), what));
    }
    let last = page.records.last().map_or(head, |last| last.seq);
    let is_full = !are_all && found < ROWS_MAX && bytes_max <= BYTES_MAX;
    page.is_last = last >= head || are_all || is_full;
    Ok(page)
}

/// Verification of the hash chain along a page.
struct Chain {
    link: Link,
    last: Seq,
}

impl Chain {
    /// Begins after the last event before the page.
    fn before(row: &Row, after: Seq) -> Result<Self, ReadError> {
        let before: Option<&[u8]> = row.get(4);
        let link = match before {
            Some(link) => parse_link(after, link)?,
            None => chain::origin(row.get(3)),
        };
        Ok(Self { link, last: after })
    }

    /// Decodes a row, and verifies that an event follows from the one before it.
    fn record(&mut self, row: &Row) -> Result<Record, ReadError> {
        let (at, form): (i64, Option<i16>) = (row.get(6), row.get(7));
        let (number, at) = (seq(row.get(5)), Timestamp(at));
        let body: Vec<u8> = row.get(10);
        let body = match form {
            None => delta(number, &body)?,
            Some(form) => {
                let link = chain::link(&self.link, number, at, form, &body);
                if link != parse_link(number, row.get(9))? {
                    let what = "its hash does not follow from the record before it";
                    return Err(corrupt(number, what));
                }
                self.link = link;
                self.last = number;
                event_row::event(number, form, body)?.into()
            }
        };
        Ok(Record {
            seq: number,
            at,
            body,
        })
    }

    /// Compares the newest event with the thread's row.
    fn check_end(&self, row: &Row) -> Result<(), ReadError> {
        let tail = seq(row.get(1));
        if self.last == tail && self.link.as_slice() != row.get::<_, &[u8]>(2) {
            let what = "its hash is not that of the thread's row";
            return Err(corrupt(tail, what));
        }
        Ok(())
    }
}

fn parse_link(at: Seq, link: &[u8]) -> Result<Link, ReadError> {
    Link::try_from(link).map_err(|_| corrupt(at, "its hash cannot be read"))
}

fn delta(number: Seq, body: &[u8]) -> Result<RecordBody, ReadError> {
    let delta: Result<Delta, _> = serde_json::from_slice(body);
    let delta = delta.map_err(|_| corrupt(number, "its text cannot be read"))?;
    Ok(RecordBody::Delta(delta))
}

/// Condition that a thread's row has the records of a base. It never holds for a base above the head
/// that a reader gets: those records may have been lost with the former primary.
fn reaches(at: &str) -> String {
    format!("head >= {at}")
}

/// Returns the newest base of a thread whose head is not above a number. A fork may have bases of its
/// own for records that it shares. One that cannot be read is skipped, because it is only a shortcut.
pub(super) async fn base(
    journal: &SharedJournal,
    thread: ThreadId,
    at: Option<Seq>,
) -> Result<Option<Base>, ReadError> {
    let sql = format!(
        "WITH t AS (SELECT log, head FROM threads WHERE id = $1 AND live),
         segment AS ({OF_T})
         SELECT it.body FROM t, segment JOIN LATERAL (
             SELECT log, at, body FROM bases
             WHERE log = segment.log AND at <= $2 AND version = $3 AND at <= segment.upto
                 AND (at >= segment.first OR log = t.log) AND t.{}
             ORDER BY at DESC LIMIT 2) AS it ON true
         ORDER BY it.at DESC, it.log = t.log DESC LIMIT 3",
        reaches("at")
    );
    let upto = at.map_or(i64::MAX, as_i64);
    let version = i32::try_from(Base::VERSION).unwrap_or(i32::MAX);
    let rows = journal
        .connections
        .reads()
        .query(&sql, &[thread.as_uuid(), &upto, &version])
        .await;
    let rows = rows.map_err(error::read)?;
    Ok(rows.iter().find_map(|row| open_base(row.get(0))))
}

fn open_base(body: &[u8]) -> Option<Base> {
    let json = zstd::decode_all(body).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Stores a base, unless the thread is gone, or is not the one that this journal wrote to.
pub(super) async fn save_base(
    journal: &SharedJournal,
    thread: ThreadId,
    base: Base,
) -> Result<(), AppendError> {
    let unwritable = |what: String| AppendError::Unavailable(what);
    let json = serde_json::to_vec(&base).map_err(|error| unwritable(error.to_string()))?;
    let body = zstd::encode_all(json.as_slice(), LEVEL);
    let body = body.map_err(|error| unwritable(error.to_string()))?;
    // The lock makes a deletion wait, which then removes the base too. An append does not wait.
    let sql = format!(
        "WITH t AS (SELECT log FROM threads WHERE id = $1 AND live AND {}
             AND ($5::uuid IS NULL OR (log = $5 AND fence = $6::bigint)) FOR KEY SHARE)
         INSERT INTO bases (log, at, version, body) SELECT log, $2, $3, $4 FROM t
         ON CONFLICT (log, at) DO UPDATE
             SET version = excluded.version, body = excluded.body",
        reaches("$2")
    );
    let written = journal.threads.get(thread);
    let written = written.filter(|it| it.row_state == RowState::Live);
    let (log, fence) = written.map(|it| (it.log, it.fence)).unzip();
    let head = as_i64(base.thread.head());
    let version = i32::try_from(base.version).unwrap_or(i32::MAX);
    // A base can be made again, so it need not survive the loss of power.
    let connection = journal.connections.deltas();
    let saved = connection
        .query(
            &sql,
            &[thread.as_uuid(), &head, &version, &body, &log, &fence],
        )
        .await;
    saved.map(|_| ()).map_err(error::repeatable)
}
