//! A thread's row: its number, its fence, and other state that is stored only here.

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::chain::{self, Link, RowChecksum};
use super::kind_index::KindEnds;
use super::{error, rowid};

/// Row of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadRow {
    pub(super) number: i64,
    /// Sequence number of the newest event.
    pub(super) head: Seq,
    /// Whether the thread is being deleted.
    pub(super) deleting: bool,
    /// Whether the thread began with another thread's records.
    pub(super) forked: bool,
    /// First link of the chain of its events.
    pub(super) origin: Link,
    /// Last record of each kind that pages are built from.
    pub(super) ends: KindEnds,
    /// Checksum of its list row; `None` if there is no list row.
    pub(super) listed: Option<RowChecksum>,
}

/// Marker in the row of a thread that is being deleted. The partial index has the same number.
const DELETING: i64 = 444_250_812_007;

const COLUMNS: &str =
    "number, id, head, going, origin, turn, turn_end, item, cut, listed, sum FROM thread";

/// Two indexes by id. The second detects an entry that vanished from the first, which leaves no
/// other trace.
const INDEXES: [&str; 2] = ["thread_id", "thread_id_again"];

impl ThreadRow {
    /// Returns the row of a thread without records.
    pub(super) fn new(thread: ThreadId) -> Self {
        Self {
            number: 0,
            head: Seq::ZERO,
            deleting: false,
            forked: false,
            origin: chain::origin(thread),
            ends: KindEnds::default(),
            listed: None,
        }
    }

    /// Returns the checksum of the row.
    pub(super) fn sum(&self, thread: ThreadId) -> RowChecksum {
        let mut hash = Sha256::new()
            .chain_update(thread.as_uuid().as_bytes())
            .chain_update(self.number.to_le_bytes())
            .chain_update(self.head.0.to_le_bytes())
            .chain_update([u8::from(self.deleting), u8::from(self.forked)])
            .chain_update(self.origin);
        for end in self.ends.all() {
            hash.update(end.0.to_le_bytes());
        }
        hash.update([u8::from(self.listed.is_some())]);
        chain::short(hash.chain_update(self.listed.unwrap_or_default()))
    }
}

/// Parses the deletion marker of a row. Returns `None` for an invalid marker.
pub(super) fn parse_deleting(mark: i64) -> Option<bool> {
    match mark {
        0 => Some(false),
        DELETING => Some(true),
        _ => None,
    }
}

/// Row as read, before its checksum is verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct UncheckedRow {
    pub(super) thread: ThreadId,
    row: ThreadRow,
    /// `None` if a column is invalid.
    sum: Option<RowChecksum>,
}

impl UncheckedRow {
    fn read(row: &rusqlite::Row<'_>) -> Result<Self, Error> {
        let id: [u8; 16] = row.get(1)?;
        let thread = ThreadId::from(uuid::Uuid::from_bytes(id));
        let seq = |at: usize| row.get::<_, i64>(at).map(|it| Seq(it.unsigned_abs()));
        let origin: Option<Link> = row.get(4)?;
        let deleting = parse_deleting(row.get(3)?);
        let parsed = ThreadRow {
            number: row.get(0)?,
            head: seq(2)?,
            deleting: deleting.unwrap_or_default(),
            forked: origin.is_some(),
            origin: origin.unwrap_or_else(|| chain::origin(thread)),
            ends: KindEnds::new([seq(5)?, seq(6)?, seq(7)?, seq(8)?]),
            listed: row.get(9)?,
        };
        Ok(Self {
            thread,
            row: parsed,
            sum: deleting.and(row.get(10)?),
        })
    }

    pub(super) fn number(&self) -> i64 {
        self.row.number
    }

    /// Returns the row if its checksum matches.
    pub(super) fn checked(self) -> Result<ThreadRow, Error> {
        if Some(self.row.sum(self.thread)) == self.sum {
            return Ok(self.row);
        }
        Err(error::damaged(
            "the thread's row is damaged: its checksum does not match",
        ))
    }

    /// Whether the row is where the indexes point, so that at least its id can be trusted.
    pub(super) fn is_known(&self, connection: &Connection) -> bool {
        matches!(number(connection, self.thread), Ok(Some(number)) if number == self.row.number)
    }
}

pub(super) fn as_i64(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// Returns a thread's row.
pub(super) fn row(connection: &Connection, thread: ThreadId) -> Result<Option<ThreadRow>, Error> {
    for index in INDEXES {
        let sql = format!("SELECT {COLUMNS} INDEXED BY {index} WHERE id = ?1");
        let unchecked = connection
            .prepare_cached(&sql)?
            .query_row([thread.as_uuid().as_bytes()], UncheckedRow::read)
            .optional()?;
        match unchecked {
            Some(unchecked) if index == INDEXES[0] && unchecked.thread == thread => {
                return unchecked.checked().map(Some);
            }
            Some(_) => return Err(indexes_disagree()),
            None => {}
        }
    }
    Ok(None)
}

/// Returns a thread's id and row, by its number.
pub(super) fn of_number(
    connection: &Connection,
    number: i64,
) -> Result<Option<(ThreadId, ThreadRow)>, Error> {
    let sql = format!("SELECT {COLUMNS} WHERE number = ?1");
    let unchecked = connection
        .prepare_cached(&sql)?
        .query_row([number], UncheckedRow::read)
        .optional()?;
    unchecked
        .map(|it| Ok((it.thread, it.checked()?)))
        .transpose()
}

/// Returns a thread's number, even if the rest of its row is damaged: the row and both indexes
/// agree on it.
pub(super) fn number(connection: &Connection, thread: ThreadId) -> Result<Option<i64>, Error> {
    let id = thread.as_uuid().as_bytes();
    let mut numbers = [None; INDEXES.len()];
    for (index, number) in INDEXES.iter().zip(&mut numbers) {
        let sql = format!("SELECT number FROM thread INDEXED BY {index} WHERE id = ?1");
        let mut statement = connection.prepare_cached(&sql)?;
        *number = statement.query_row([id], |row| row.get(0)).optional()?;
    }
    let [number, again] = numbers;
    let Some(agreed) = number.filter(|_| number == again) else {
        return if number == again {
            Ok(None)
        } else {
            Err(indexes_disagree())
        };
    };
    let stored_id: Option<[u8; 16]> = connection
        .prepare_cached("SELECT id FROM thread NOT INDEXED WHERE number = ?1")?
        .query_row([agreed], |row| row.get(0))
        .optional()?;
    if stored_id.as_ref() == Some(id) {
        return Ok(Some(agreed));
    }
    Err(indexes_disagree())
}

fn indexes_disagree() -> Error {
    error::damaged("the two indexes of threads differ")
}

/// Returns the rows of the ids from the first to the last.
pub(super) fn within(
    connection: &Connection,
    first: &[u8; 16],
    last: &[u8; 16],
) -> Result<Vec<UncheckedRow>, Error> {
    let [rows, again] = INDEXES.map(|index| {
        let sql = format!("SELECT {COLUMNS} INDEXED BY {index} WHERE id BETWEEN ?1 AND ?2");
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([first, last], UncheckedRow::read)?;
        rows.collect::<Result<Vec<UncheckedRow>, Error>>()
    });
    let (rows, again) = (rows?, again?);
    let ids = |rows: &[UncheckedRow]| rows.iter().map(|it| it.thread).collect::<Vec<_>>();
    if ids(&rows) == ids(&again) {
        return Ok(rows);
    }
    Err(indexes_disagree())
}

/// Moves the fence. No other writer can have moved it inside this transaction. If the update
/// matches no row, the append must not be committed.
pub(super) fn move_fence(
    transaction: &Connection,
    thread: ThreadId,
    from: Seq,
    row: &ThreadRow,
) -> Result<(), Error> {
    let [turn, turn_end, item, cut] = row.ends.all().map(as_i64);
    let updated = transaction
        .prepare_cached(
            "UPDATE thread SET head = ?1, going = ?2, origin = ?3, turn = ?4, turn_end = ?5,
                 item = ?6, cut = ?7, listed = ?8, sum = ?9
             WHERE number = ?10 AND head = ?11",
        )?
        .execute(params![
            as_i64(row.head),
            if row.deleting { DELETING } else { 0 },
            row.forked.then_some(row.origin),
            turn,
            turn_end,
            item,
            cut,
            row.listed,
            row.sum(thread),
            row.number,
            as_i64(from),
        ])?;
    if updated != 1 {
        return Err(Error::StatementChangedRows(updated));
    }
    Ok(())
}

/// Inserts the row of a thread and sets its number.
pub(super) fn begin(
    transaction: &Connection,
    thread: ThreadId,
    row: &mut ThreadRow,
) -> Result<(), Error> {
    transaction
        .prepare_cached(
            "INSERT INTO thread (id, head, turn, turn_end, item, cut, sum)
             VALUES (?1, 0, 0, 0, 0, 0, x'')",
        )?
        .execute([thread.as_uuid().as_bytes()])?;
    let number = transaction.last_insert_rowid();
    if number > rowid::NUMBER_MAX {
        return Err(Error::IntegralValueOutOfRange(0, number));
    }
    row.number = number;
    move_fence(transaction, thread, Seq::ZERO, row)
}

/// Marks a thread as being deleted. The rest of its row no longer matters, so it may be damaged and
/// is not read.
pub(super) fn mark_deleting(
    transaction: &Connection,
    thread: ThreadId,
    number: i64,
) -> Result<(), Error> {
    let row = ThreadRow {
        number,
        deleting: true,
        ..ThreadRow::new(thread)
    };
    let updated = transaction
        .prepare_cached(
            "UPDATE thread SET head = 0, going = ?1, origin = NULL, turn = 0, turn_end = 0, item = 0,
                 cut = 0, listed = NULL, sum = ?2
             WHERE number = ?3",
        )?
        .execute(params![DELETING, row.sum(thread), number])?;
    if updated != 1 {
        return Err(Error::StatementChangedRows(updated));
    }
    Ok(())
}
