//! Rows of a journal, recognised by their shape.

use std::collections::{BTreeMap, HashMap};

use raddle_core::{Seq, ThreadId};

use super::super::chain::{self, Link};
use super::super::fence::{self, ThreadRow};
use super::super::kind_index::KindEnds;
use super::page::{Cell, ColumnValue, is_integer};
use super::raw_pages::RowLocation;

/// Column types in the file format: null, sixteen bytes, eight bytes.
const NULL: u64 = 0;
const LINK: u64 = 12 + 2 * 16;
const SUM: u64 = 12 + 2 * 8;

/// Rows found in the pages, and their locations. Bodies are not loaded.
#[derive(Debug, Default)]
pub(super) struct RawRows {
    /// Rows with a valid checksum, and threads identified by their records, without a head.
    pub(super) threads: HashMap<ThreadId, ThreadRow>,
    /// Possible origins of the chain of a number, from rows with a wrong checksum.
    pub(super) hints: HashMap<i64, Vec<Link>>,
    /// Segments that each fork shares: the last record, and the number of the source.
    pub(super) parts: BTreeMap<i64, Vec<(Seq, i64)>>,
    pub(super) events: BTreeMap<i64, Vec<RowLocation>>,
    pub(super) deltas: BTreeMap<i64, Vec<RowLocation>>,
}

impl RawRows {
    /// Adds a row to the rows of its shape. Rows of other shapes are ignored.
    pub(super) fn add(&mut self, location: RowLocation, cell: &Cell) {
        let integers = |range: &[u64]| range.iter().all(|kind| is_integer(*kind));
        match (cell.rowid, cell.types.as_slice()) {
            (Some(at), [NULL, time, form, LINK, _]) if integers(&[*time, *form]) => {
                self.events.entry(at).or_default().push(location);
            }
            (Some(at), [NULL, time, _, part, offset, SUM, _])
                if integers(&[*time, *part, *offset]) =>
            {
                self.deltas.entry(at).or_default().push(location);
            }
            (
                Some(number),
                [
                    NULL,
                    LINK,
                    head,
                    going,
                    NULL | LINK,
                    ends @ ..,
                    NULL | SUM,
                    SUM,
                ],
            ) if integers(&[*head, *going]) && integers(ends) => {
                if let Some(thread) = RawThreadRow::read(cell, number) {
                    self.thread(thread);
                }
            }
            (None, [number, upto, taken, SUM]) if integers(&[*number, *upto, *taken]) => {
                if let Some(
                    [
                        ColumnValue::Integer(number),
                        ColumnValue::Integer(upto),
                        ColumnValue::Integer(taken),
                        ColumnValue::Bytes(sum),
                    ],
                ) = cell.values(&cell.local).as_deref()
                {
                    let upto = Seq(upto.unsigned_abs());
                    if chain::sum_of_segment(*number, upto, *taken).as_slice() == sum {
                        self.parts.entry(*number).or_default().push((upto, *taken));
                    }
                }
            }
            _ => {}
        }
    }

    fn thread(&mut self, RawThreadRow { thread, row, sound }: RawThreadRow) {
        if !sound {
            self.hints.entry(row.number).or_default().push(row.origin);
            return;
        }
        // With a truncated WAL there may be two versions of a row. The first is the one that SQLite
        // would serve.
        let entry = self.threads.entry(thread).or_insert(row);
        if (entry.head, entry.deleting) < (row.head, row.deleting) {
            *entry = row;
        }
    }
}

/// Row that looks like a thread's.
struct RawThreadRow {
    thread: ThreadId,
    row: ThreadRow,
    /// Whether its checksum is valid.
    sound: bool,
}

impl RawThreadRow {
    fn read(cell: &Cell, number: i64) -> Option<Self> {
        let values = cell.values(&cell.local)?;
        let [
            _,
            ColumnValue::Bytes(id),
            numbers @ ..,
            listed,
            ColumnValue::Bytes(sum),
        ] = values.as_slice()
        else {
            return None;
        };
        let thread = ThreadId::from(uuid::Uuid::from_slice(id).ok()?);
        let [head, going, origin, turn, turn_end, item, cut] = numbers else {
            return None;
        };
        let bytes = |value: &ColumnValue| match value {
            ColumnValue::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        };
        let seq = |value: &ColumnValue| match value {
            ColumnValue::Integer(seq) => Some(Seq(seq.unsigned_abs())),
            _ => None,
        };
        let origin = bytes(origin);
        let deleting = match going {
            ColumnValue::Integer(mark) => fence::parse_deleting(*mark),
            _ => None,
        };
        let row = ThreadRow {
            number,
            head: seq(head)?,
            deleting: deleting.unwrap_or_default(),
            forked: origin.is_some(),
            origin: match origin {
                Some(origin) => origin.try_into().ok()?,
                None => chain::origin(thread),
            },
            ends: KindEnds::new([seq(turn)?, seq(turn_end)?, seq(item)?, seq(cut)?]),
            listed: match bytes(listed) {
                Some(listed) => Some(listed.try_into().ok()?),
                None => None,
            },
        };
        let sound = deleting.is_some() && row.sum(thread).as_slice() == sum;
        Some(Self { thread, row, sound })
    }
}
