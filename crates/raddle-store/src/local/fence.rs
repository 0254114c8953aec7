//! A thread's row: its number and its fence.

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain::{self, Link};
use super::course::Course;
use super::key;

/// A thread as its row has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) number: i64,
    /// Its newest event.
    pub(super) head: Seq,
    /// Whether it is being deleted.
    pub(super) going: bool,
    /// Whether it began with another thread's records.
    pub(super) forked: bool,
    /// What the chain of its events begins with.
    pub(super) origin: Link,
}

pub(super) fn as_i64(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// A thread's row.
pub(super) fn row(connection: &Connection, thread: ThreadId) -> Result<Option<Row>, Error> {
    connection
        .prepare_cached("SELECT number, head, going, origin FROM thread WHERE id = ?1")?
        .query_row([thread.as_uuid().as_bytes()], |row| {
            let origin: Option<Link> = row.get(3)?;
            Ok(Row {
                number: row.get(0)?,
                head: Seq(row.get::<_, i64>(1)?.unsigned_abs()),
                going: row.get(2)?,
                forked: origin.is_some(),
                origin: origin.unwrap_or_else(|| chain::origin(thread)),
            })
        })
        .optional()
}

/// The newest number of a thread: that of its newest event, or of a delta after it.
pub(super) fn head(connection: &Connection, row: Row) -> Result<Seq, Error> {
    let delta = newest_delta(connection, row.number)?;
    Ok(delta.map_or(row.head, |delta| delta.max(row.head)))
}

/// The newest delta of a thread, if there is any.
pub(super) fn newest_delta(connection: &Connection, number: i64) -> Result<Option<Seq>, Error> {
    let delta: Option<i64> = connection
        .prepare_cached("SELECT max(at) FROM delta WHERE at BETWEEN ?1 AND ?2")?
        .query_row([key::first(number), key::last(number)], |row| row.get(0))?;
    Ok(delta.map(key::seq))
}

/// The fence. Nobody else can have moved it inside this transaction; if this does not find its row,
/// something is so wrong that the append must not stand.
pub(super) fn move_fence(
    transaction: &Connection,
    number: i64,
    from: Seq,
    to: Seq,
) -> Result<(), Error> {
    let moved = transaction
        .prepare_cached("UPDATE thread SET head = ?1 WHERE number = ?2 AND head = ?3")?
        .execute([as_i64(to), number, as_i64(from)])?;
    if moved != 1 {
        return Err(Error::StatementChangedRows(moved));
    }
    Ok(())
}

/// The last link of a thread's chain; nothing if the newest event is not where the fence says.
pub(super) fn end_of_chain(connection: &Connection, row: Row) -> Result<Option<Link>, Error> {
    let last = Course::of(connection, row)?.event_upto(connection, key::SEQ_MAX)?;
    Ok((last.seq == row.head).then_some(last.link))
}

/// Makes the row of a new thread, and says its number.
pub(super) fn begin(transaction: &Connection, thread: ThreadId) -> Result<i64, Error> {
    transaction
        .prepare_cached("INSERT INTO thread (id, head) VALUES (?1, 0)")?
        .execute([thread.as_uuid().as_bytes()])?;
    numbered(transaction)
}

/// Makes the row of a thread that goes on from an event of another, and says its number.
pub(super) fn begin_fork(
    transaction: &Connection,
    thread: ThreadId,
    head: Seq,
    origin: &Link,
) -> Result<i64, Error> {
    transaction
        .prepare_cached("INSERT INTO thread (id, head, origin) VALUES (?1, ?2, ?3)")?
        .execute(params![thread.as_uuid().as_bytes(), as_i64(head), origin])?;
    numbered(transaction)
}

fn numbered(transaction: &Connection) -> Result<i64, Error> {
    let number = transaction.last_insert_rowid();
    if number > key::NUMBER_MAX {
        return Err(Error::IntegralValueOutOfRange(0, number));
    }
    Ok(number)
}
