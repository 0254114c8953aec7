//! Head of a thread: its newest event, or a delta after it.

use raddle_core::ports::ReadError;
use raddle_core::{RecordBody, Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::chain::Link;
use super::fence::ThreadRow;
use super::segments::Segments;
use super::{error, read, rowid};

/// Returns the newest number, or zero if the thread does not exist.
pub(super) fn of_thread(connection: &Connection, id: ThreadId) -> Result<Seq, ReadError> {
    match read::thread(connection, id)? {
        Some(row) => of_row(connection, id, &row).map_err(|error| error::read(error, row.head)),
        None => Ok(Seq::ZERO),
    }
}

/// Returns the newest number of a thread: that of its newest event, or of a delta after it.
pub(super) fn of_row(
    connection: &Connection,
    thread: ThreadId,
    row: &ThreadRow,
) -> Result<Seq, Error> {
    let delta = newest_delta(connection, thread, row.number)?;
    Ok(delta.map_or(row.head, |delta| delta.max(row.head)))
}

/// Returns the newest delta of a thread, if there is any.
pub(super) fn newest_delta(
    connection: &Connection,
    thread: ThreadId,
    number: i64,
) -> Result<Option<Seq>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT at, time, item, part, offset, sum, text FROM delta
         WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1",
    )?;
    let mut rows = statement.query([rowid::first(number), rowid::last(number)])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    match read::checked_delta(thread, row, Seq::ZERO) {
        Ok((record, _)) if matches!(record.body, RecordBody::Delta(_)) => Ok(Some(record.seq)),
        _ => Err(error::damaged(
            "its newest delta is damaged: its checksum does not match",
        )),
    }
}

/// Returns the last link of a thread's chain. Returns `None` if the newest event is not where the
/// fence points, or differs from what was written.
pub(super) fn end_of_chain(
    connection: &Connection,
    row: &ThreadRow,
) -> Result<Option<Link>, Error> {
    let segments = Segments::of(connection, row)?;
    let last = segments.event_upto(connection, rowid::SEQ_MAX)?;
    let sound = last.seq == row.head && read::follows(connection, &segments, last)?;
    Ok(sound.then_some(last.link))
}
