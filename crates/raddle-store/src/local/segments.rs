//! Segments of a thread: its own rows under its number, and the rows that a fork shares under the
//! numbers of other threads. To a reader they are one sequence of records.

use raddle_core::Seq;
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain::{self, Link};
use super::error;
use super::fence::{ThreadRow, as_i64};
use super::kind_index::KindEnds;
use super::rowid::{self, key};

/// Segments of a thread, oldest first. The last is its own, and has no end.
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

/// An event's number, and its link in the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainedEvent {
    pub(super) seq: Seq,
    pub(super) link: Link,
}

/// Order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOrder {
    OldestFirst,
    NewestFirst,
}

impl Segments {
    pub(super) fn of(connection: &Connection, row: &ThreadRow) -> Result<Self, Error> {
        let mut segments = Vec::new();
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
                if sum != chain::sum_of_segment(row.number, last, number) {
                    return Err(error::damaged(
                        "the segment that the fork shares is damaged: its checksum does not match",
                    ));
                }
                segments.push(Segment {
                    number,
                    first,
                    last,
                });
                first = last.next();
            }
        }
        let (number, last) = (row.number, rowid::SEQ_MAX);
        segments.push(Segment {
            number,
            first,
            last,
        });
        Ok(Self {
            segments,
            origin: row.origin,
            ends: row.ends,
        })
    }

    /// Returns the segments that hold records from the first number to the last, clipped to that
    /// range.
    pub(super) fn between(
        &self,
        from: Seq,
        to: Seq,
    ) -> impl DoubleEndedIterator<Item = Segment> + '_ {
        let clipped = self.segments.iter().map(move |part| Segment {
            number: part.number,
            first: part.first.max(from),
            last: part.last.min(to),
        });
        clipped.filter(|part| part.first <= part.last)
    }

    /// Returns the key of a record.
    pub(super) fn key_of(&self, seq: Seq) -> i64 {
        let part = self.between(seq, seq).next();
        part.map_or(key(0, seq), |part| key(part.number, seq))
    }

    /// Returns the last event up to and including a number, or the origin before the first.
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
    /// Returns the first and the last key of its rows.
    pub(super) fn keys(&self) -> [i64; 2] {
        [key(self.number, self.first), key(self.number, self.last)]
    }
}

/// Returns the last record of a thread that forks share, not counting one fork; `None` if no fork
/// does.
pub(super) fn shared_upto(
    connection: &Connection,
    number: i64,
    except: i64,
) -> Result<Option<Seq>, Error> {
    let upto: Option<i64> = connection
        .prepare_cached("SELECT max(upto) FROM part WHERE taken = ?1 AND number <> ?2")?
        .query_row([number, except], |row| row.get(0))?;
    Ok(upto.map(|upto| Seq(upto.unsigned_abs())))
}

/// Stores that a fork shares a segment.
pub(super) fn share(transaction: &Connection, number: i64, part: Segment) -> Result<(), Error> {
    transaction
        .prepare_cached("INSERT INTO part (number, upto, taken, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            number,
            as_i64(part.last),
            part.number,
            chain::sum_of_segment(number, part.last, part.number)
        ])?;
    Ok(())
}
