//! Forks: a thread that begins with another thread's records. Those rows are shared; only deltas of
//! open items are copied.

use raddle_core::ports::{AppendError, ForkError, ReadError, Summary};
use raddle_core::{Seq, ThreadId};
use uuid::Uuid;

use super::SharedJournal;
use super::connection::Param;
use super::connections::Transaction;
use super::delta_row::{gathered_of_t, lane};
use super::error::{self, QueryFailure};
use super::rebuild::{self, summary_at};
use super::segments::OF_T;
use super::statement::Statement;
use super::summary_row::{self, SummaryRow};
use super::thread_state::{self, RowState, as_i64, seq};

/// Maximum number of attempts while the database aborts the transaction in favour of another, or the
/// thread's id begins anew.
const ATTEMPTS_MAX: usize = 5;

/// Reason why an attempt to fork did not succeed.
enum ForkFailure {
    Fork(ForkError),
    /// A statement that reads failed.
    Read(QueryFailure),
    /// A statement that writes failed.
    Write(QueryFailure),
    /// The thread changed before its row was locked.
    Changed,
}

impl From<ForkError> for ForkFailure {
    fn from(error: ForkError) -> Self {
        Self::Fork(error)
    }
}

impl From<ReadError> for ForkFailure {
    fn from(error: ReadError) -> Self {
        Self::Fork(error.into())
    }
}

impl ForkFailure {
    /// Whether another attempt is due at once.
    fn is_repeated(&self) -> bool {
        match self {
            Self::Fork(_) => false,
            Self::Read(failure) | Self::Write(failure) => failure.is_serialization(),
            Self::Changed => true,
        }
    }

    fn into_error(self) -> ForkError {
        match self {
            Self::Fork(error) => error,
            Self::Read(failure) => error::read(failure).into(),
            Self::Write(failure) => error::append(failure).into(),
            Self::Changed => {
                let what = "the thread changes again and again".to_owned();
                AppendError::Unavailable(what).into()
            }
        }
    }
}

/// Creates the thread `to` with the records of `from` up to a number.
pub(super) async fn fork(
    journal: &SharedJournal,
    from: ThreadId,
    at: Seq,
    to: ThreadId,
) -> Result<Seq, ForkError> {
    if journal.threads.is_in_doubt(from) {
        // Records that may vanish must not be shared.
        let settled = thread_state::settle(journal, from).await;
        settled.map_err(error::read)?;
    }
    let mut attempts = 1;
    loop {
        match attempt(journal, from, at, to).await {
            Err(failure) if failure.is_repeated() && attempts < ATTEMPTS_MAX => attempts += 1,
            result => return result.map_err(ForkFailure::into_error),
        }
    }
}

async fn attempt(
    journal: &SharedJournal,
    from: ThreadId,
    at: Seq,
    to: ThreadId,
) -> Result<Seq, ForkFailure> {
    let past = PastSummary::load(journal, from, at).await?;
    let transaction = journal
        .connections
        .begin()
        .await
        .map_err(ForkFailure::Write)?;
    let head = run(&transaction, from, at, to, &past).await?;
    let write = journal.threads.writing(to);
    let committed = transaction.commit().await;
    if !matches!(committed, Err(QueryFailure::Lost(_))) {
        write.conclude();
    }
    committed.map_err(ForkFailure::Write)?;
    Ok(head)
}

/// Summary of a thread at a record before its newest.
struct PastSummary {
    /// Log of the thread, whose records up to that one never change; `None` if the record was the
    /// newest, or is still to come.
    log: Option<Uuid>,
    summary: Option<Summary>,
}

impl PastSummary {
    /// Folds the summary, which may take a while, before the thread's row is locked.
    async fn load(journal: &SharedJournal, from: ThreadId, at: Seq) -> Result<Self, ForkFailure> {
        let loaded = rebuild::load(journal, from).await;
        let state = loaded.map_err(ForkFailure::Read)??;
        if state.row_state != RowState::Live {
            return Err(ReadError::NotFound.into());
        }
        let mut past = Self {
            log: None,
            summary: None,
        };
        if at < state.head {
            past.summary = summary_at(journal, from, at).await?;
            past.log = Some(state.log);
        }
        Ok(past)
    }
}

/// Returns the summary of a thread whose row is locked.
async fn summary_of(
    transaction: &Transaction<'_>,
    from: ThreadId,
    head: Seq,
) -> Result<Option<Summary>, ForkFailure> {
    let sql = "SELECT body FROM summaries WHERE id = $1";
    let rows = transaction.query(sql, &[from.as_uuid()]).await;
    let rows = rows.map_err(ForkFailure::Read)?;
    let summary = rows.first().map(|row| summary_row::parse(row.get(0), head));
    // One that cannot be read was rebuilt when the thread was loaded, or is when the fork is.
    Ok(summary.and_then(Result::ok))
}

/// Writes the fork, inside a transaction.
async fn run(
    transaction: &Transaction<'_>,
    from: ThreadId,
    at: Seq,
    to: ThreadId,
    past: &PastSummary,
) -> Result<Seq, ForkFailure> {
    let exists = "SELECT 1 FROM threads WHERE id = $1 AND live";
    let taken = transaction.query(exists, &[to.as_uuid()]).await;
    if !taken.map_err(ForkFailure::Write)?.is_empty() {
        return Err(ForkError::Taken.into());
    }
    // The lock makes an append or a deletion wait. The statements after it see the thread as it is
    // now.
    let lock = "SELECT log, head, family, writer, since FROM threads
                WHERE id = $1 AND live FOR SHARE";
    let rows = transaction.query(lock, &[from.as_uuid()]).await;
    let rows = rows.map_err(ForkFailure::Read)?;
    let source = rows.first().ok_or(ReadError::NotFound)?;
    let (before, family): (i64, Uuid) = (source.get(1), source.get(2));
    let (writer, since): (Option<Uuid>, i64) = (source.get(3), source.get(4));
    let source: Uuid = source.get(0);
    let (lane, gathered) = (lane(from), gathered_of_t("$5"));
    let t = "t AS (SELECT $1::uuid AS log, $2::bigint AS head, $3::uuid AS writer,
                 $4::bigint AS since)";
    let newest = format!("WITH {t} SELECT max(d.seq) FROM ({gathered}) AS d");
    let params: [Param<'_>; 5] = [&source, &before, &writer, &since, &lane];
    let newest = transaction
        .query(&newest, &params)
        .await
        .map_err(ForkFailure::Read)?;
    let newest: Option<i64> = newest.first().and_then(|row| row.get(0));
    let head = seq(newest.unwrap_or(before));
    if at > head {
        return Err(ForkError::Beyond { head }.into());
    }
    let listed = if at >= seq(before) {
        summary_of(transaction, from, head).await?
    } else if past.log == Some(source) {
        past.summary.clone()
    } else {
        return Err(ForkFailure::Changed);
    };
    let log = Uuid::now_v7();
    let last = share(transaction, from, at, log).await?;
    let (tail, link) = match last {
        Some((tail, link)) => (tail, link),
        None => (Seq::ZERO, super::chain::origin(family).to_vec()),
    };
    let copy = format!(
        "WITH {t},
         open AS (
             SELECT seq, at, item, bytes, body FROM deltas WHERE log = $1
             UNION ALL {gathered})
         INSERT INTO deltas (log, seq, at, item, bytes, body)
         SELECT $6, seq, at, item, bytes, body FROM open WHERE seq <= $7
         RETURNING seq"
    );
    let upto = as_i64(at);
    let params: [Param<'_>; 7] = [&source, &before, &writer, &since, &lane, &log, &upto];
    let copied = transaction.query(&copy, &params).await;
    let copied = copied.map_err(ForkFailure::Write)?;
    let newest = copied.iter().map(|row| seq(row.get(0))).max();
    let head = newest.map_or(tail, |newest| newest.max(tail));
    let begin = "INSERT INTO threads AS t (id, log, live, head, tail, link, fence, family)
                 VALUES ($1, $2, true, $3, $4, $5, 0, $6)
                 ON CONFLICT (id) DO UPDATE
                     SET log = excluded.log, live = true, head = excluded.head,
                         tail = excluded.tail, link = excluded.link, family = excluded.family
                     WHERE NOT t.live
                 RETURNING 1";
    let id = to.as_uuid();
    let begun = transaction
        .query(
            begin,
            &[id, &log, &as_i64(head), &as_i64(tail), &link, &family],
        )
        .await;
    if begun.map_err(ForkFailure::Write)?.is_empty() {
        return Err(ForkError::Taken.into());
    }
    adopt_blobs(transaction, to, family).await?;
    if let Some(row) = listed.map(|it| SummaryRow::new(to, &it)) {
        let mut statement = Statement::default();
        row.write(&mut statement, "");
        let listed = transaction.query(&statement.sql, &statement.params).await;
        listed.map_err(ForkFailure::Write)?;
    }
    Ok(head)
}

/// Moves the blobs that were put for the fork before it existed to the family that it is of, so that
/// forks of it have them too.
async fn adopt_blobs(
    transaction: &Transaction<'_>,
    to: ThreadId,
    family: Uuid,
) -> Result<(), ForkFailure> {
    let sql = "WITH waiting AS (
                   DELETE FROM blobs WHERE family = $1 AND family <> $2 AND waiting > 0
                       AND NOT EXISTS (SELECT 1 FROM blob_uses
                           WHERE blob_uses.family = blobs.family AND blob_uses.hash = blobs.hash)
                   RETURNING hash, form, body, waiting, put_at)
               INSERT INTO blobs AS b (family, hash, form, body, waiting, put_at)
               SELECT $2, hash, form, body, waiting, put_at FROM waiting
               ON CONFLICT (family, hash) DO UPDATE
                   SET waiting = b.waiting + excluded.waiting,
                       put_at = greatest(b.put_at, excluded.put_at)";
    let adopted = transaction.query(sql, &[to.as_uuid(), &family]).await;
    adopted.map_err(ForkFailure::Write)?;
    Ok(())
}

/// Shares the events of a thread up to a number with a log. Returns the last of them and its link.
async fn share(
    transaction: &Transaction<'_>,
    from: ThreadId,
    at: Seq,
    log: Uuid,
) -> Result<Option<(Seq, Vec<u8>)>, ForkFailure> {
    let sql = format!(
        "WITH t AS (SELECT log FROM threads WHERE id = $1 AND live),
         segment AS ({OF_T})
         SELECT it.seq, it.link FROM segment JOIN LATERAL (
             SELECT seq, link FROM records
             WHERE log = segment.log AND seq <= $2 AND seq BETWEEN segment.first AND segment.upto
             ORDER BY seq DESC LIMIT 1) AS it ON true
         ORDER BY it.seq DESC LIMIT 1"
    );
    let id = from.as_uuid();
    let rows = transaction.query(&sql, &[id, &as_i64(at)]).await;
    let rows = rows.map_err(ForkFailure::Read)?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let last: i64 = row.get(0);
    // Numbers of records may have gaps, so the fork's own records may begin below `at`.
    let sql = format!(
        "WITH t AS (SELECT log FROM threads WHERE id = $1 AND live),
         segment AS ({OF_T})
         INSERT INTO parts (log, upto, first, taken)
         SELECT $2, least(upto, $3), first, log FROM segment WHERE first <= $3"
    );
    let shared = transaction.query(&sql, &[id, &log, &last]).await;
    shared.map_err(ForkFailure::Write)?;
    Ok(Some((seq(last), row.get(1))))
}
