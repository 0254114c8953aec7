//! Lag of the search index behind the journal at one moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_core::ports::ReadError;
use rusqlite::{Connection, Error};

use super::index::IndexSnapshot;
use crate::local::files::BlobFiles;
use crate::local::{error, row_codec, rowid};
use crate::records;
use crate::text::searchable;

/// Text that was stored at one moment and was missing from the index when it was last checked.
#[derive(Debug)]
pub struct Lag {
    folder: PathBuf,
    /// Newest event with text of each lagging thread.
    heads: BTreeMap<i64, i64>,
}

impl Lag {
    pub(in crate::local) fn of(
        connection: &Connection,
        files: &BlobFiles,
        folder: &Path,
    ) -> Result<Self, ReadError> {
        let marks = marks(folder)?;
        let heads = lagging_heads(connection, files, &marks).map_err(error::open)?;
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

/// Returns the newest events with text that are not in the index, by thread. Events without text
/// wait for the next one that has some: nothing can be found in them.
fn lagging_heads(
    connection: &Connection,
    files: &BlobFiles,
    marks: &BTreeMap<i64, i64>,
) -> Result<BTreeMap<i64, i64>, Error> {
    let mut threads = connection.prepare("SELECT number, head FROM thread WHERE going = 0")?;
    // Records that a fork shares are in the index under another number.
    let mut newest = connection
        .prepare("SELECT at, form, body FROM event WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC")?;
    let mut heads = BTreeMap::new();
    let mut rows = threads.query([])?;
    while let Some(row) = rows.next()? {
        let (number, head): (i64, i64) = (row.get(0)?, row.get(1)?);
        let mark = marks.get(&number).copied().unwrap_or(rowid::first(number));
        if mark >= rowid::first(number) + head {
            continue;
        }
        let mut events = newest.query([mark + 1, rowid::first(number) + head])?;
        while let Some(event) = events.next()? {
            if has_text(event.get(1)?, &event.get::<_, Vec<u8>>(2)?, files) {
                heads.insert(number, event.get(0)?);
                break;
            }
        }
    }
    Ok(heads)
}

/// Whether an event has text to search. An unreadable event has none, as for the index.
fn has_text(form: i64, body: &[u8], files: &BlobFiles) -> bool {
    let json = row_codec::open(form, body, files).ok();
    let event = json.and_then(|json| records::decode(&json).ok());
    event.is_some_and(|event| searchable(&event).is_some())
}
