//! Lag of the search index behind the journal at one moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_core::ports::ReadError;
use rusqlite::{Connection, Error};

use super::index::IndexSnapshot;
use crate::local::{error, rowid};

/// Records that were stored at one moment and were missing from the index when it was last checked.
#[derive(Debug)]
pub struct Lag {
    folder: PathBuf,
    /// Newest event of each lagging thread.
    heads: BTreeMap<i64, i64>,
}

impl Lag {
    pub(in crate::local) fn of(connection: &Connection, folder: &Path) -> Result<Self, ReadError> {
        let marks = marks(folder)?;
        let heads = lagging_heads(connection, &marks).map_err(error::open)?;
        let folder = folder.to_owned();
        Ok(Self { folder, heads })
    }

    /// Returns the number of lagging threads.
    pub fn threads(&self) -> usize {
        self.heads.len()
    }

    /// Checks the index again.
    pub fn refresh(&mut self) -> Result<(), ReadError> {
        let marks = marks(&self.folder)?;
        self.heads
            .retain(|number, head| marks.get(number) < Some(head));
        Ok(())
    }
}

fn marks(folder: &Path) -> Result<BTreeMap<i64, i64>, ReadError> {
    let index = IndexSnapshot::open(folder, String::new())?;
    index.map_or_else(|| Ok(BTreeMap::new()), |index| index.marks())
}

/// Returns the newest events that are not in the index, by thread.
fn lagging_heads(
    connection: &Connection,
    marks: &BTreeMap<i64, i64>,
) -> Result<BTreeMap<i64, i64>, Error> {
    let mut threads = connection.prepare("SELECT number, head FROM thread WHERE going = 0")?;
    // Records that a fork shares are in the index under another number.
    let mut newest = connection.prepare("SELECT max(at) FROM event WHERE at BETWEEN ?1 AND ?2")?;
    let mut heads = BTreeMap::new();
    let mut rows = threads.query([])?;
    while let Some(row) = rows.next()? {
        let (number, head): (i64, i64) = (row.get(0)?, row.get(1)?);
        let mark = marks.get(&number).copied().unwrap_or(rowid::first(number));
        if mark >= rowid::first(number) + head {
            continue;
        }
        let own: Option<i64> =
            newest.query_row([mark + 1, rowid::first(number) + head], |row| row.get(0))?;
        if let Some(own) = own {
            heads.insert(number, own);
        }
    }
    Ok(heads)
}
