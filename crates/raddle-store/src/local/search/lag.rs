//! How far the index is behind what was stored at one moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_core::ports::ReadError;
use rusqlite::{Connection, Error};

use super::index::IndexSnapshot;
use crate::local::{error, rowid};

/// What was stored at one moment and was not yet in the index of words when it was last looked at.
#[derive(Debug)]
pub struct Lag {
    folder: PathBuf,
    /// The newest event of each thread that is behind.
    heads: BTreeMap<i64, i64>,
}

impl Lag {
    pub(in crate::local) fn of(connection: &Connection, folder: &Path) -> Result<Self, ReadError> {
        let marks = marks(folder)?;
        let heads = behind(connection, &marks).map_err(error::open)?;
        let folder = folder.to_owned();
        Ok(Self { folder, heads })
    }

    /// How many threads are behind.
    pub fn threads(&self) -> usize {
        self.heads.len()
    }

    /// Looks at the index again.
    pub fn look(&mut self) -> Result<(), ReadError> {
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

/// The newest events of threads that are not in the index.
fn behind(
    connection: &Connection,
    marks: &BTreeMap<i64, i64>,
) -> Result<BTreeMap<i64, i64>, Error> {
    let mut threads = connection.prepare("SELECT number, head FROM thread WHERE going = 0")?;
    // What a fork took over is in the index under another number.
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
