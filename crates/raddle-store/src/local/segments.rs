//! Where a thread's rows lie: its own under its number, and what it took over from others, when it was
//! forked, under theirs. To a reader they are one row of records.

use raddle_core::Seq;
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain::{self, Link};
use super::error;
use super::fence::{ThreadRow, as_i64};
use super::kind_index::KindEnds;
use super::rowid::{self, key};

/// The parts that a thread is made of, oldest first. The last is its own and open at its end.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    origin: Link,
    pub(super) ends: KindEnds,
}

/// Rows of one number, from the first record to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: i64,
    first: Seq,
    pub(super) last: Seq,
}

/// An event, and its link of the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainedEvent {
    pub(super) seq: Seq,
    pub(super) link: Link,
}

/// In which order rows are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOrder {
    OldestFirst,
    NewestFirst,
}

impl Segments {
    pub(super) fn of(connection: &Connection, row: &ThreadRow) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut first = Seq::ZERO;
        if row.forked {
            let mut statement = connection.prepare_cached(
                "SELECT taken, upto, sum FROM part WHERE number = ?1 ORDER BY upto",
            )?;
            let mut rows = statement.query([row.number])?;
            while let Some(part) = rows.next()? {
                let last = Seq(part.get::<_, i64>(1)?.unsigned_abs());
                let number = part.get(0)?;
                let sum: [u8; 8] = part.get(2)?;
                if sum != chain::sum_of_part(row.number, last, number) {
                    return Err(error::damaged(
                        "what the fork took over is not what was written",
                    ));
                }
                parts.push(Segment {
                    number,
                    first,
                    last,
                });
                first = last.next();
            }
        }
        let (number, last) = (row.number, rowid::SEQ_MAX);
        parts.push(Segment {
            number,
            first,
            last,
        });
        Ok(Self {
            segments: parts,
            origin: row.origin,
            ends: row.ends,
        })
    }

    /// The parts that hold records from the first number to the last, cut to those.
    pub(super) fn between(
        &self,
        from: Seq,
        to: Seq,
    ) -> impl DoubleEndedIterator<Item = Segment> + '_ {
        let cut = self.segments.iter().map(move |part| Segment {
            number: part.number,
            first: part.first.max(from),
            last: part.last.min(to),
        });
        cut.filter(|part| part.first <= part.last)
    }

    /// The key of a record.
    pub(super) fn key_of(&self, seq: Seq) -> i64 {
        let part = self.between(seq, seq).next();
        part.map_or(key(0, seq), |part| key(part.number, seq))
    }

    /// The last event up to and including a number, or what stands before the first.
    pub(super) fn event_upto(
        &self,
        connection: &Connection,
        upto: Seq,
    ) -> Result<ChainedEvent, Error> {
        for part in self.between(Seq(1), upto).rev() {
            let last = connection
                .prepare_cached(
                    "SELECT at, chain FROM event WHERE at BETWEEN ?1 AND ?2
                     ORDER BY at DESC LIMIT 1",
                )?
                .query_row(part.keys(), |row| {
                    Ok(ChainedEvent {
                        seq: rowid::seq(row.get(0)?),
                        link: row.get(1)?,
                    })
                })
                .optional()?;
            if let Some(last) = last {
                return Ok(last);
            }
        }
        Ok(ChainedEvent {
            seq: Seq::ZERO,
            link: self.origin,
        })
    }
}

impl Segment {
    /// The keys of its rows: from the first to the last.
    pub(super) fn keys(&self) -> [i64; 2] {
        [key(self.number, self.first), key(self.number, self.last)]
    }
}

/// How far threads use rows of another's number that they took over, one of them left out; nothing if
/// none does.
pub(super) fn taken_upto(
    connection: &Connection,
    number: i64,
    but_by: i64,
) -> Result<Option<Seq>, Error> {
    let upto: Option<i64> = connection
        .prepare_cached("SELECT max(upto) FROM part WHERE taken = ?1 AND number <> ?2")?
        .query_row([number, but_by], |row| row.get(0))?;
    Ok(upto.map(|upto| Seq(upto.unsigned_abs())))
}

/// Notes that a fork took over a part.
pub(super) fn take(transaction: &Connection, number: i64, part: Segment) -> Result<(), Error> {
    transaction
        .prepare_cached("INSERT INTO part (number, upto, taken, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            number,
            as_i64(part.last),
            part.number,
            chain::sum_of_part(number, part.last, part.number)
        ])?;
    Ok(())
}
