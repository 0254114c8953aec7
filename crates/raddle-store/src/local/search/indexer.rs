//! The thread that keeps the index: it takes in what is new, some records at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rusqlite::{Connection, Error, OptionalExtension};

use super::index;
use super::signal::{IndexSignal, PendingThreads};
use crate::local::files::BlobFiles;
use crate::local::{row_codec, rowid, schema, segments};
use crate::records;
use crate::text::searchable;

/// How many events are taken in at a time.
const EVENTS_MAX: i64 = 256;

/// The thread that keeps the index.
#[derive(Debug)]
pub(in crate::local) struct Indexer {
    signal: IndexSignal,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    pub(in crate::local) fn start(folder: &Path, files: BlobFiles) -> std::io::Result<Self> {
        let bell = IndexSignal::for_all();
        let desk = IndexWorker {
            folder: folder.to_owned(),
            files,
            signal: bell.clone(),
        };
        let builder = std::thread::Builder::new().name("journal-search".to_owned());
        let thread = builder.spawn(move || desk.run())?;
        Ok(Self {
            signal: bell,
            thread: Some(thread),
        })
    }

    /// One that keeps nothing, for a folder that is only read.
    pub(in crate::local) fn none() -> Self {
        Self {
            signal: IndexSignal::disconnected(),
            thread: None,
        }
    }

    pub(in crate::local) fn signal(&self) -> &IndexSignal {
        &self.signal
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.signal.close();
        if let Some(thread) = self.thread.take() {
            // What it has not done, the next one does.
            let _ = thread.join();
        }
    }
}

struct IndexWorker {
    folder: PathBuf,
    files: BlobFiles,
    signal: IndexSignal,
}

/// The index, open for writing, and the journal, open for reading.
struct IndexConns {
    index: Connection,
    journal: Connection,
}

impl IndexWorker {
    fn run(self) {
        let mut open = None;
        let mut failed = false;
        while let Some(mut note) = self.signal.wait() {
            note.all |= failed;
            let opened = match open.take() {
                Some(open) => Ok(open),
                None => IndexConns::new(&self.folder),
            };
            // A failure costs nothing but time: what was not taken in is found by its watermark.
            let done = opened.and_then(|open| self.take_in(&open, note).map(|()| open));
            failed = done.is_err();
            open = done.ok();
        }
    }

    fn take_in(&self, open: &IndexConns, note: PendingThreads) -> Result<(), Error> {
        let mut numbers = note.threads;
        if note.all {
            numbers.extend(open.behind()?);
        }
        while !numbers.is_empty() && !self.signal.is_closed() {
            open.index.execute_batch("BEGIN IMMEDIATE")?;
            let done = self.piece(open, &mut numbers);
            let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
            open.index.execute_batch(end)?;
            done?;
        }
        Ok(())
    }

    /// Takes in some events of some threads, and leaves those that are not done.
    fn piece(&self, open: &IndexConns, numbers: &mut BTreeSet<i64>) -> Result<(), Error> {
        let mut room = EVENTS_MAX;
        while let Some(number) = numbers.first().copied() {
            let taken = self.thread(open, number, room)?;
            if taken == room {
                return Ok(());
            }
            numbers.remove(&number);
            room -= taken;
        }
        Ok(())
    }

    /// Takes in events of a thread, or forgets it if it is gone. Says how many there were.
    fn thread(&self, open: &IndexConns, number: i64, room: i64) -> Result<i64, Error> {
        let IndexConns { index, journal } = open;
        let there = journal
            .prepare_cached("SELECT 1 FROM thread WHERE number = ?1 AND going = 0")?
            .exists([number])?;
        let mut end = rowid::last(number);
        if !there {
            // What forks have taken over of it stays.
            let kept = segments::taken_upto(journal, number, number)?;
            end = kept.map_or(rowid::first(number), |kept| rowid::key(number, kept));
            let gone = [end + 1, rowid::last(number)];
            index.execute("DELETE FROM words WHERE rowid BETWEEN ?1 AND ?2", gone)?;
            if kept.is_none() {
                index.execute("DELETE FROM mark WHERE number = ?1", [number])?;
                return Ok(0);
            }
        }
        let upto: Option<i64> = index
            .prepare_cached("SELECT upto FROM mark WHERE number = ?1")?
            .query_row([number], |row| row.get(0))
            .optional()?;
        let upto = upto.unwrap_or(rowid::first(number));
        let mut events = journal.prepare_cached(
            "SELECT at, form, body FROM event WHERE at > ?1 AND at <= ?2 ORDER BY at LIMIT ?3",
        )?;
        let mut rows = events.query([upto, end, room])?;
        let mut taken = 0;
        let mut last = upto;
        while let Some(row) = rows.next()? {
            taken += 1;
            last = row.get(0)?;
            if let Some(text) = self.text(row.get(1)?, &row.get::<_, Vec<u8>>(2)?) {
                index::insert(index, last, &text)?;
            }
        }
        if last != upto {
            index
                .prepare_cached("INSERT OR REPLACE INTO mark (number, upto) VALUES (?1, ?2)")?
                .execute([number, last])?;
        }
        Ok(taken)
    }

    /// The words of an event. One that cannot be read has none; whoever opens its thread is told.
    fn text(&self, form: i64, body: &[u8]) -> Option<String> {
        let json = row_codec::open(form, body, &self.files).ok()?;
        let event = records::decode(&json).ok()?;
        searchable(&event)
    }
}

impl IndexConns {
    /// Opens both. An index that is damaged is thrown away.
    fn new(folder: &Path) -> Result<Self, Error> {
        let journal = schema::open_to_read(folder)?;
        let index = index::open_to_write(folder);
        let damaged = index.as_ref().err().is_some_and(|error| {
            use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
            matches!(
                error.sqlite_error_code(),
                Some(DatabaseCorrupt | NotADatabase)
            )
        });
        if !damaged {
            let index = index?;
            return Ok(Self { index, journal });
        }
        index::throw_away(folder);
        let index = index::open_to_write(folder)?;
        Ok(Self { index, journal })
    }

    /// Threads whose watermark is below their head, and watermarks whose thread is gone.
    fn behind(&self) -> Result<Vec<i64>, Error> {
        let pairs = |connection: &Connection, sql: &str| -> Result<BTreeMap<i64, i64>, Error> {
            let mut statement = connection.prepare(sql)?;
            let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            pairs.collect()
        };
        let heads = pairs(
            &self.journal,
            "SELECT number, (number << 36) + head FROM thread WHERE going = 0",
        )?;
        let marks = pairs(&self.index, "SELECT number, upto FROM mark")?;
        let behind = heads
            .iter()
            .filter(|(number, head)| marks.get(number) < Some(head));
        let parts = pairs(
            &self.journal,
            "SELECT taken, max(upto) FROM part GROUP BY taken",
        )?;
        let orphans = parts.keys().filter(|number| !heads.contains_key(number));
        // Some of these are parts of forks, which is seen when they are looked at.
        let gone = marks.keys().filter(|number| !heads.contains_key(number));
        Ok(behind
            .map(|(number, _)| *number)
            .chain(gone.copied())
            .chain(orphans.copied())
            .collect())
    }
}
