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
use super::read;
use super::segments::OF_T;
use super::statement::Statement;
use super::summary_row::SummaryRow;
use super::thread_state::{self, RowState, as_i64, seq};

/// Bytes of records that are read at once to rebuild a summary.
const PAGE_BYTES: usize = 1 << 20;

/// Creates the thread `to` with the records of `from` up to a number.
pub(super) async fn fork(
    journal: &SharedJournal,
    from: ThreadId,
    at: Seq,
    to: ThreadId,
) -> Result<Seq, ForkError> {
    let mut state = thread_state::load(journal, from).await.map_err(unread)??;
    if journal.threads.is_in_doubt(from) {
        // Records that may vanish must not be shared.
        thread_state::settle(journal, from).await.map_err(unread)?;
        state = thread_state::load(journal, from).await.map_err(unread)??;
    }
    if state.row_state != RowState::Live {
        return Err(ReadError::NotFound.into());
    }
    let summary = if at >= state.head {
        state.summary
    } else {
        summary_at(journal, from, at).await?
    };
    let row = summary.map(|it| SummaryRow::new(to, &it));
    let transaction = journal.connections.begin().await.map_err(unwritten)?;
    let head = run(&transaction, from, at, to, row.as_ref()).await?;
    let write = journal.threads.writing(to);
    match transaction.commit().await {
        Ok(()) => {
            write.conclude();
            Ok(head)
        }
        Err(QueryFailure::Lost(what)) => {
            drop(write);
            Err(AppendError::Unknown(what).into())
        }
        Err(failure) => {
            write.conclude();
            Err(unwritten(failure))
        }
    }
}

fn unread(failure: QueryFailure) -> ForkError {
    error::read(failure).into()
}

fn unwritten(failure: QueryFailure) -> ForkError {
    error::append(failure).into()
}

/// Returns the summary of a thread at a record. The records before it never change.
async fn summary_at(
    journal: &SharedJournal,
    from: ThreadId,
    at: Seq,
) -> Result<Option<Summary>, ReadError> {
    let base = read::base(journal, from, Some(at)).await?;
    let mut after = base.as_ref().map_or(Seq::ZERO, |it| it.thread.head());
    let mut summary = base.and_then(|base| Summary::of(&base.thread));
    loop {
        let page = read::records(journal, from, after, PAGE_BYTES).await?;
        for record in page.iter().take_while(|it| it.seq <= at) {
            Summary::fold(&mut summary, record);
        }
        match page.last() {
            Some(last) if last.seq < at => after = last.seq,
            _ => return Ok(summary),
        }
    }
}

/// Writes the fork, inside a transaction.
async fn run(
    transaction: &Transaction<'_>,
    from: ThreadId,
    at: Seq,
    to: ThreadId,
    row: Option<&SummaryRow>,
) -> Result<Seq, ForkError> {
    let exists = "SELECT 1 FROM threads WHERE id = $1 AND live";
    let taken = transaction.query(exists, &[to.as_uuid()]).await;
    if !taken.map_err(unwritten)?.is_empty() {
        return Err(ForkError::Taken);
    }
    // The lock makes an append or a deletion wait. The statements after it see the thread as it is
    // now.
    let lock = "SELECT log, head, family, writer, since FROM threads
                WHERE id = $1 AND live FOR SHARE";
    let rows = transaction.query(lock, &[from.as_uuid()]).await;
    let rows = rows.map_err(unread)?;
    let source = rows.first().ok_or(ReadError::NotFound)?;
    let (before, family): (i64, Uuid) = (source.get(1), source.get(2));
    let (writer, since): (Option<Uuid>, i64) = (source.get(3), source.get(4));
    let source: Uuid = source.get(0);
    let (lane, gathered) = (lane(from), gathered_of_t("$5"));
    let t = "t AS (SELECT $1::uuid AS log, $2::bigint AS head, $3::uuid AS writer,
                 $4::bigint AS since)";
    let newest = format!("WITH {t} SELECT max(d.seq) FROM ({gathered}) AS d");
    let params: [Param<'_>; 5] = [&source, &before, &writer, &since, &lane];
    let newest = transaction.query(&newest, &params).await.map_err(unread)?;
    let newest: Option<i64> = newest.first().and_then(|row| row.get(0));
    let head = seq(newest.unwrap_or(before));
    if at > head {
        return Err(ForkError::Beyond { head });
    }
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
    let copied = copied.map_err(unwritten)?;
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
    if begun.map_err(unwritten)?.is_empty() {
        return Err(ForkError::Taken);
    }
    if let Some(row) = row {
        let mut statement = Statement::default();
        row.write(&mut statement, "");
        let listed = transaction.query(&statement.sql, &statement.params).await;
        listed.map_err(unwritten)?;
    }
    Ok(head)
}

/// Shares the events of a thread up to a number with a log. Returns the last of them and its link.
async fn share(
    transaction: &Transaction<'_>,
    from: ThreadId,
    at: Seq,
    log: Uuid,
) -> Result<Option<(Seq, Vec<u8>)>, ForkError> {
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
    let rows = rows.map_err(unread)?;
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
    shared.map_err(unwritten)?;
    Ok(Some((seq(last), row.get(1))))
}
