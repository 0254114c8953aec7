//! Index rows that locate the records of a kind, so that a page need not scan all records.
//!
//! Each row names the previous one, and the thread's row names the last. So a scan detects a
//! vanished row wherever it begins and in either direction.

use raddle_core::Seq;
use rusqlite::{Connection, Error, OptionalExtension};
use sha2::{Digest, Sha256};

use super::chain::{self, RowChecksum};
use super::error;
use super::fence::ThreadRow;
use super::rowid::{self, key};
use super::segments::{ScanOrder, Segments};

/// Kind of records that pages are built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindIndex {
    /// Records that begin a turn.
    Turn,
    /// Records that end a turn.
    TurnEnd,
    /// Records that hold a whole item.
    Item,
    /// Records that revert turns.
    Revert,
}

impl KindIndex {
    const ALL: [Self; 4] = [Self::Turn, Self::TurnEnd, Self::Item, Self::Revert];

    fn table(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::TurnEnd => "turn_end",
            Self::Item => "item",
            Self::Revert => "cut",
        }
    }

    /// Returns the `SELECT` clause that [`KindIndex::entry`] reads.
    fn select(self) -> String {
        let since = if self == Self::Revert { "since" } else { "0" };
        format!("SELECT at, before, {since}, sum FROM {}", self.table())
    }

    /// Makes a record the last of its kind. Returns its index row and the row's checksum.
    pub(super) fn advance(
        self,
        row: &mut ThreadRow,
        seq: Seq,
        since: Seq,
    ) -> (KindEntry, RowChecksum) {
        let entry = KindEntry {
            at: key(row.number, seq),
            before: row.ends.advance(self, seq),
            since,
        };
        (entry, entry.sum(self))
    }

    /// Reads a row and verifies its checksum.
    fn entry(self, row: &rusqlite::Row<'_>) -> Result<KindEntry, Error> {
        let seq = |at: usize| row.get::<_, i64>(at).map(|it| Seq(it.unsigned_abs()));
        let entry = KindEntry {
            at: row.get(0)?,
            before: seq(1)?,
            since: seq(2)?,
        };
        let sum: RowChecksum = row.get(3)?;
        if sum == entry.sum(self) {
            return Ok(entry);
        }
        Err(error::damaged(
            "an index row of its turns or items is damaged",
        ))
    }
}

/// Last record of each kind in a thread; zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KindEnds([Seq; KindIndex::ALL.len()]);

impl KindEnds {
    pub(super) fn new(ends: [Seq; KindIndex::ALL.len()]) -> Self {
        Self(ends)
    }

    pub(super) fn all(&self) -> [Seq; KindIndex::ALL.len()] {
        self.0
    }

    fn of(&self, index: KindIndex) -> Seq {
        self.0[index as usize]
    }

    /// Makes a record the last of its kind. Returns the previous one.
    fn advance(&mut self, index: KindIndex, seq: Seq) -> Seq {
        std::mem::replace(&mut self.0[index as usize], seq)
    }
}

/// Row of a kind index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KindEntry {
    /// Key of the record.
    pub(super) at: i64,
    /// Record of the previous row; zero for the first row.
    pub(super) before: Seq,
    /// First reverted record; zero if none was reverted.
    pub(super) since: Seq,
}

impl KindEntry {
    pub(super) fn seq(&self) -> Seq {
        rowid::seq(self.at)
    }

    /// Returns the checksum of the row.
    fn sum(&self, index: KindIndex) -> RowChecksum {
        let hash = Sha256::new()
            .chain_update([index as u8])
            .chain_update(self.at.to_le_bytes())
            .chain_update(self.before.0.to_le_bytes())
            .chain_update(self.since.0.to_le_bytes());
        chain::short(hash)
    }

    /// Whether the previous row is before a number too, so that none is missing in between.
    fn is_first_from(&self, from: Seq) -> bool {
        is_before(self.before, from) && self.before < self.seq()
    }
}

/// Whether `end` is before `from`. `Seq::ZERO` means that there is no record.
fn is_before(end: Seq, from: Seq) -> bool {
    end == Seq::ZERO || end < from
}

fn gap() -> Error {
    error::damaged("index rows of its turns or items are missing")
}

impl Segments {
    /// Returns the ends of the kind indexes of a thread that ends at a record.
    pub(super) fn ends_upto(&self, connection: &Connection, upto: Seq) -> Result<KindEnds, Error> {
        let mut ends = KindEnds::default();
        for index in KindIndex::ALL {
            ends.advance(index, self.last_upto(connection, index, upto)?);
        }
        Ok(ends)
    }

    /// Returns the first row from a number on, if there is one.
    pub(super) fn first_from(
        &self,
        connection: &Connection,
        index: KindIndex,
        from: Seq,
    ) -> Result<Option<KindEntry>, Error> {
        let select = index.select();
        let sql = format!("{select} WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT 1");
        let mut statement = connection.prepare_cached(&sql)?;
        for part in self.between(from, rowid::SEQ_MAX) {
            let row = statement.query_row(part.keys(), |row| index.entry(row));
            let entry = row.optional()?;
            if let Some(entry) = entry {
                return if entry.is_first_from(from) {
                    Ok(Some(entry))
                } else {
                    Err(gap())
                };
            }
        }
        if is_before(self.ends.of(index), from) {
            Ok(None)
        } else {
            Err(gap())
        }
    }

    /// Returns the last record of a kind up to and including a number; zero if there is none.
    pub(super) fn last_upto(
        &self,
        connection: &Connection,
        index: KindIndex,
        upto: Seq,
    ) -> Result<Seq, Error> {
        let next = self.first_from(connection, index, upto.next())?;
        Ok(next.map_or(self.ends.of(index), |next| next.before))
    }

    /// Returns up to `limit` rows from the first number to the last.
    pub(super) fn along(
        &self,
        connection: &Connection,
        index: KindIndex,
        range: (Seq, Seq),
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        match order {
            ScanOrder::OldestFirst => self.scan_forward(connection, index, range, limit),
            ScanOrder::NewestFirst => self.scan_backward(connection, index, range, limit),
        }
    }

    fn scan_forward(
        &self,
        connection: &Connection,
        index: KindIndex,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        let mut entries: Vec<KindEntry> = Vec::new();
        let mut next = from;
        while entries.len() < limit {
            let Some(entry) = self.first_from(connection, index, next)? else {
                break;
            };
            if entries
                .last()
                .is_some_and(|last| last.seq() != entry.before)
            {
                return Err(gap());
            }
            if entry.seq() > to {
                break;
            }
            next = entry.seq().next();
            entries.push(entry);
        }
        Ok(entries)
    }

    fn scan_backward(
        &self,
        connection: &Connection,
        index: KindIndex,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        let mut entries = Vec::new();
        let mut last = self.last_upto(connection, index, to)?;
        while entries.len() < limit && last != Seq::ZERO && last >= from {
            let sql = format!("{} WHERE at = ?1", index.select());
            let at = self.key_of(last);
            let row = connection
                .prepare_cached(&sql)?
                .query_row([at], |row| index.entry(row))
                .optional()?;
            let entry = row.filter(|it| it.before < last).ok_or_else(gap)?;
            last = entry.before;
            entries.push(entry);
        }
        Ok(entries)
    }
}
