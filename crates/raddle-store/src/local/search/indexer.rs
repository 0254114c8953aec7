//! The indexer thread: adds new records to the index, in batches.

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

/// Maximum number of events in a batch.
const EVENTS_MAX: i64 = 256;

/// Handle of the indexer thread.
#[derive(Debug)]
pub(in crate::local) struct Indexer {
    signal: IndexSignal,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    pub(in crate::local) fn start(folder: &Path, files: BlobFiles) -> std::io::Result<Self> {
        let signal = IndexSignal::for_all();
        let worker = IndexWorker {
            folder: folder.to_owned(),
            files,
            signal: signal.clone(),
        };
        let builder = std::thread::Builder::new().name("journal-search".to_owned());
        let thread = builder.spawn(move || worker.run())?;
        Ok(Self {
            signal,
            thread: Some(thread),
        })
    }

    /// Returns an indexer without a thread, for a read-only folder.
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
            // Unfinished work is done by the next indexer.
            let _ = thread.join();
        }
    }
}

struct IndexWorker {
    folder: PathBuf,
    files: BlobFiles,
    signal: IndexSignal,
}

/// Connections to the index, for writing, and to the journal, for reading.
struct IndexConns {
    index: Connection,
    journal: Connection,
}

impl IndexWorker {
    fn run(self) {
        let mut open = None;
        let mut failed = false;
        while let Some(mut pending) = self.signal.wait() {
            pending.all |= failed;
            let opened = match open.take() {
                Some(open) => Ok(open),
                None => IndexConns::new(&self.folder),
            };
            // A failure costs only time: the watermarks show what is not indexed yet.
            let done = opened.and_then(|open| self.index_pending(&open, pending).map(|()| open));
            failed = done.is_err();
            open = done.ok();
        }
    }

    fn index_pending(&self, open: &IndexConns, pending: PendingThreads) -> Result<(), Error> {
        let mut numbers = pending.threads;
        if pending.all {
            numbers.extend(open.outdated()?);
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

    /// Indexes some events of some threads, and removes the finished threads from the set.
    fn piece(&self, open: &IndexConns, numbers: &mut BTreeSet<i64>) -> Result<(), Error> {
        let mut remaining = EVENTS_MAX;
        while let Some(number) = numbers.first().copied() {
            let indexed = self.thread(open, number, remaining)?;
            if indexed == remaining {
                return Ok(());
            }
            numbers.remove(&number);
            remaining -= indexed;
        }
        Ok(())
    }

    /// Indexes events of a thread, or removes it from the index if it was deleted. Returns the
    /// number of events.
    fn thread(&self, open: &IndexConns, number: i64, events_max: i64) -> Result<i64, Error> {
        let IndexConns { index, journal } = open;
        let exists = journal
            .prepare_cached("SELECT 1 FROM thread WHERE number = ?1 AND going = 0")?
            .exists([number])?;
        let mut end = rowid::last(number);
        if !exists {
            // Records that forks share stay.
            let shared_upto = segments::shared_upto(journal, number, number)?;
            end = shared_upto.map_or(rowid::first(number), |upto| rowid::key(number, upto));
            let deleted = [end + 1, rowid::last(number)];
            index.execute("DELETE FROM words WHERE rowid BETWEEN ?1 AND ?2", deleted)?;
            if shared_upto.is_none() {
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
        let mut rows = events.query([upto, end, events_max])?;
        let mut indexed = 0;
        let mut last = upto;
        while let Some(row) = rows.next()? {
            indexed += 1;
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
        Ok(indexed)
    }

    /// Returns the searchable text of an event. An unreadable event has none; reading its thread
    /// reports the damage.
    fn text(&self, form: i64, body: &[u8]) -> Option<String> {
        let json = row_codec::open(form, body, &self.files).ok()?;
        let event = records::decode(&json).ok()?;
        searchable(&event)
    }
}

impl IndexConns {
    /// Opens both. Recreates a damaged index.
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
        index::discard(folder);
        let index = index::open_to_write(folder)?;
        Ok(Self { index, journal })
    }

    /// Returns the threads whose watermark is below their head, and watermarks without a thread.
    fn outdated(&self) -> Result<Vec<i64>, Error> {
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
        let lagging = heads
            .iter()
            .filter(|(number, head)| marks.get(number) < Some(head));
        let parts = pairs(
            &self.journal,
            "SELECT taken, max(upto) FROM part GROUP BY taken",
        )?;
        let orphans = parts.keys().filter(|number| !heads.contains_key(number));
        // Some of these are shared by forks, which is detected when they are processed.
        let deleted = marks.keys().filter(|number| !heads.contains_key(number));
        Ok(lagging
            .map(|(number, _)| *number)
            .chain(deleted.copied())
            .chain(orphans.copied())
            .collect())
    }
}
