//! Rows that say where the records of a kind are, so that a page need not look at all of them.
//!
//! Each names the one before it, and the thread's row names the last. So one that vanished is missed by
//! whoever comes along, wherever the walk begins and whichever way it goes.

use raddle_core::Seq;
use rusqlite::{Connection, Error, OptionalExtension};

use super::chain::{self, RowChecksum};
use super::error;
use super::fence::ThreadRow;
use super::rowid::{self, key};
use super::segments::{ScanOrder, Segments};

/// A kind of records that pages are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindIndex {
    /// That begin a turn.
    Turn,
    /// That end one.
    TurnEnd,
    /// That bring a whole item.
    Item,
    /// That cut turns away.
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

    /// What [`Trail::entry`] reads.
    fn select(self) -> String {
        let since = if self == Self::Revert { "since" } else { "0" };
        format!("SELECT at, before, {since}, sum FROM {}", self.table())
    }

    /// The row of a record that is the last of its kind now, and its checksum.
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
        (entry, chain::sum_of_entry(self, &entry))
    }

    /// Reads a row, if it bears its checksum.
    fn entry(self, row: &rusqlite::Row<'_>) -> Result<KindEntry, Error> {
        let seq = |at: usize| row.get::<_, i64>(at).map(|it| Seq(it.unsigned_abs()));
        let entry = KindEntry {
            at: row.get(0)?,
            before: seq(1)?,
            since: seq(2)?,
        };
        let sum: RowChecksum = row.get(3)?;
        if sum == chain::sum_of_entry(self, &entry) {
            return Ok(entry);
        }
        Err(error::damaged(
            "a row that says where its turns and items are was changed",
        ))
    }
}

/// The last record of each kind that a thread has; zero where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KindEnds([Seq; KindIndex::ALL.len()]);

impl KindEnds {
    pub(super) fn new(ends: [Seq; KindIndex::ALL.len()]) -> Self {
        Self(ends)
    }

    pub(super) fn all(&self) -> [Seq; KindIndex::ALL.len()] {
        self.0
    }

    fn of(&self, trail: KindIndex) -> Seq {
        self.0[trail as usize]
    }

    /// A record of this kind is the last now. Says which was.
    fn advance(&mut self, trail: KindIndex, seq: Seq) -> Seq {
        std::mem::replace(&mut self.0[trail as usize], seq)
    }
}

/// A row of a trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KindEntry {
    /// The key of the record.
    pub(super) at: i64,
    /// The record of the row before it; zero if it is the first.
    pub(super) before: Seq,
    /// The first record that was cut away; zero where none was.
    pub(super) since: Seq,
}

impl KindEntry {
    pub(super) fn seq(&self) -> Seq {
        rowid::seq(self.at)
    }

    /// Whether the one before it is before a number too, so that none is missing in between.
    fn is_first_from(&self, from: Seq) -> bool {
        is_before(self.before, from) && self.before < self.seq()
    }
}

/// Whether the end of a trail, or of what came before a row, is before a number. Zero is no record.
fn is_before(end: Seq, from: Seq) -> bool {
    end == Seq::ZERO || end < from
}

fn gap() -> Error {
    error::damaged("rows that say where its turns and items are have vanished")
}

impl Segments {
    /// The ends of the trails of a thread that ends with a record.
    pub(super) fn ends_upto(&self, connection: &Connection, upto: Seq) -> Result<KindEnds, Error> {
        let mut ends = KindEnds::default();
        for trail in KindIndex::ALL {
            ends.advance(trail, self.last_upto(connection, trail, upto)?);
        }
        Ok(ends)
    }

    /// The first row from a number on, if there is one.
    pub(super) fn first_from(
        &self,
        connection: &Connection,
        trail: KindIndex,
        from: Seq,
    ) -> Result<Option<KindEntry>, Error> {
        let select = trail.select();
        let sql = format!("{select} WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT 1");
        let mut statement = connection.prepare_cached(&sql)?;
        for part in self.between(from, rowid::SEQ_MAX) {
            let found = statement.query_row(part.keys(), |row| trail.entry(row));
            let found = found.optional()?;
            if let Some(found) = found {
                return if found.is_first_from(from) {
                    Ok(Some(found))
                } else {
                    Err(gap())
                };
            }
        }
        if is_before(self.ends.of(trail), from) {
            Ok(None)
        } else {
            Err(gap())
        }
    }

    /// The last record of a kind up to and including a number; zero if there is none.
    pub(super) fn last_upto(
        &self,
        connection: &Connection,
        trail: KindIndex,
        upto: Seq,
    ) -> Result<Seq, Error> {
        let next = self.first_from(connection, trail, upto.next())?;
        Ok(next.map_or(self.ends.of(trail), |next| next.before))
    }

    /// Up to `limit` rows from the first number to the last.
    pub(super) fn along(
        &self,
        connection: &Connection,
        trail: KindIndex,
        range: (Seq, Seq),
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        match order {
            ScanOrder::OldestFirst => self.scan_forward(connection, trail, range, limit),
            ScanOrder::NewestFirst => self.scan_backward(connection, trail, range, limit),
        }
    }

    fn scan_forward(
        &self,
        connection: &Connection,
        trail: KindIndex,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        let mut found: Vec<KindEntry> = Vec::new();
        let mut next = from;
        while found.len() < limit {
            let Some(entry) = self.first_from(connection, trail, next)? else {
                break;
            };
            if found.last().is_some_and(|last| last.seq() != entry.before) {
                return Err(gap());
            }
            if entry.seq() > to {
                break;
            }
            next = entry.seq().next();
            found.push(entry);
        }
        Ok(found)
    }

    fn scan_backward(
        &self,
        connection: &Connection,
        trail: KindIndex,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<KindEntry>, Error> {
        let mut found = Vec::new();
        let mut last = self.last_upto(connection, trail, to)?;
        while found.len() < limit && last != Seq::ZERO && last >= from {
            let sql = format!("{} WHERE at = ?1", trail.select());
            let at = self.key_of(last);
            let found_here = connection
                .prepare_cached(&sql)?
                .query_row([at], |row| trail.entry(row))
                .optional()?;
            let entry = found_here.filter(|it| it.before < last).ok_or_else(gap)?;
            last = entry.before;
            found.push(entry);
        }
        Ok(found)
    }
}
