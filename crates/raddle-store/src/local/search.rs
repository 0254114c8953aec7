//! Search: an index in a file of its own, made from the records and some way behind them.
//!
//! It holds no text, only which three letters follow one another where. Everything here can be thrown
//! away; a thread of its own makes it again. How far it has come with a thread is its watermark.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use raddle_core::Seq;
use raddle_core::ports::{ListQuery, Page, ReadError, Summary};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::files::Files;
use super::key;
use super::{course, error, form, home, pages, schema};
use crate::page::{self, LETTERS_MIN};
use crate::records;
use crate::text::searchable;

/// The file's name in the journal's folder.
const FILE: &str = "search.sqlite";

/// How many threads may wait to be looked at. If there are more, all are looked at.
const WAITING_MAX: usize = 4096;

/// How long new words may wait for others before they are taken in.
const LAG: Duration = Duration::from_secs(1);

/// How long to wait while another process writes.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// How many events are taken in at a time.
const EVENTS_MAX: i64 = 256;

/// With more finds than this it is quicker to walk the list than to look each of them up.
const FINDS_MAX: usize = 1000;

const LAYOUT: &str = "
    CREATE TABLE IF NOT EXISTS mark (number INTEGER PRIMARY KEY, upto INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5
        (text, content = '', contentless_delete = 1, tokenize = 'trigram');
";

/// Where the indexer is told what is new.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<Slate>);

#[derive(Debug)]
struct Slate {
    note: Mutex<Note>,
    changed: Condvar,
}

/// What the indexer is to do.
#[derive(Debug, Default)]
struct Note {
    /// Threads that have new words, or are gone.
    threads: BTreeSet<i64>,
    /// All threads are to be looked at.
    all: bool,
    /// Someone searches, so what is new is worth taking in now.
    hurry: bool,
    closed: bool,
}

impl Bell {
    /// A thread has new words, or is gone.
    pub(super) fn ring(&self, number: i64) {
        let mut note = self.note();
        let idle = note.is_empty();
        if note.threads.len() < WAITING_MAX {
            note.threads.insert(number);
        } else {
            note.all = true;
        }
        // Whoever waits for more to come need not be woken for each.
        if idle {
            self.0.changed.notify_one();
        }
    }

    /// Someone searches.
    pub(super) fn hurry(&self) {
        self.note().hurry = true;
        self.0.changed.notify_one();
    }

    fn close(&self) {
        self.note().closed = true;
        self.0.changed.notify_one();
    }

    fn note(&self) -> MutexGuard<'_, Note> {
        self.0.note.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is new and then a little longer, because much at once is cheaper than
    /// little often. Nothing when the journal is closed.
    fn wait(&self) -> Option<Note> {
        let idle = |note: &mut Note| note.is_empty() && !note.closed;
        let changed = &self.0.changed;
        let note = changed.wait_while(self.note(), idle);
        let note = note.unwrap_or_else(PoisonError::into_inner);
        let early = |note: &mut Note| !note.hurry && !note.closed;
        let note = changed.wait_timeout_while(note, LAG, early);
        let (mut note, _) = note.unwrap_or_else(PoisonError::into_inner);
        (!note.closed).then(|| std::mem::take(&mut *note))
    }
}

impl Note {
    fn is_empty(&self) -> bool {
        self.threads.is_empty() && !self.all
    }
}

/// The thread that keeps the index.
#[derive(Debug)]
pub(super) struct Indexer {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    pub(super) fn start(folder: &Path, files: Files) -> std::io::Result<Self> {
        let bell = Bell(Arc::new(Slate {
            // It begins with what was left undone.
            note: Mutex::new(Note {
                all: true,
                ..Note::default()
            }),
            changed: Condvar::new(),
        }));
        let desk = Desk {
            folder: folder.to_owned(),
            files,
            bell: bell.clone(),
        };
        let builder = std::thread::Builder::new().name("journal-search".to_owned());
        let thread = builder.spawn(move || desk.run())?;
        Ok(Self {
            bell,
            thread: Some(thread),
        })
    }

    /// One that keeps nothing, for a folder that is only read.
    pub(super) fn none() -> Self {
        let slate = Slate {
            note: Mutex::default(),
            changed: Condvar::new(),
        };
        Self {
            bell: Bell(Arc::new(slate)),
            thread: None,
        }
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.bell.close();
        if let Some(thread) = self.thread.take() {
            // What it has not done, the next one does.
            let _ = thread.join();
        }
    }
}

struct Desk {
    folder: PathBuf,
    files: Files,
    bell: Bell,
}

/// The index, open for writing, and the journal, open for reading.
struct Open {
    index: Connection,
    journal: Connection,
}

impl Desk {
    fn run(self) {
        let mut open = None;
        let mut failed = false;
        while let Some(mut note) = self.bell.wait() {
            note.all |= failed;
            let opened = match open.take() {
                Some(open) => Ok(open),
                None => Open::new(&self.folder),
            };
            // A failure costs nothing but time: what was not taken in is found by its watermark.
            let done = opened.and_then(|open| self.take_in(&open, note).map(|()| open));
            failed = done.is_err();
            open = done.ok();
        }
    }

    fn take_in(&self, open: &Open, note: Note) -> Result<(), Error> {
        let mut numbers = note.threads;
        if note.all {
            numbers.extend(open.behind()?);
        }
        while !numbers.is_empty() && !self.bell.note().closed {
            open.index.execute_batch("BEGIN IMMEDIATE")?;
            let done = self.piece(open, &mut numbers);
            let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
            open.index.execute_batch(end)?;
            done?;
        }
        Ok(())
    }

    /// Takes in some events of some threads, and leaves those that are not done.
    fn piece(&self, open: &Open, numbers: &mut BTreeSet<i64>) -> Result<(), Error> {
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
    fn thread(&self, open: &Open, number: i64, room: i64) -> Result<i64, Error> {
        let Open { index, journal } = open;
        let there = journal
            .prepare_cached("SELECT 1 FROM thread WHERE number = ?1 AND going = 0")?
            .exists([number])?;
        let mut end = key::last(number);
        if !there {
            // What forks have taken over of it stays.
            let kept = course::taken_upto(journal, number, number)?;
            end = kept.map_or(key::first(number), |kept| key::key(number, kept));
            let gone = [end + 1, key::last(number)];
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
        let upto = upto.unwrap_or(key::first(number));
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
                index
                    .prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
                    .execute(params![last, text])?;
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
        let json = form::open(form, body, &self.files).ok()?;
        let event = records::decode(&json).ok()?;
        searchable(&event)
    }
}

impl Open {
    /// Opens both. An index that is damaged is thrown away.
    fn new(folder: &Path) -> Result<Self, Error> {
        let journal = schema::open_to_read(folder)?;
        let index = open_index(folder);
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
        for name in [FILE, "search.sqlite-wal", "search.sqlite-shm"] {
            // If it stays, opening it fails again and search finds nothing.
            let _ = std::fs::remove_file(folder.join(name));
        }
        let index = open_index(folder)?;
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

fn open_index(folder: &Path) -> Result<Connection, Error> {
    let connection = Connection::open(folder.join(FILE))?;
    connection.busy_timeout(BUSY_MAX)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.execute_batch(LAYOUT)?;
    Ok(connection)
}

/// A page of threads that hold a text. `connection` reads the journal.
pub(super) fn search(
    connection: &Connection,
    folder: &Path,
    text: &str,
    query: &ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let cursor = page::ListCursor::parse(query)?;
    let short = text.chars().count() < LETTERS_MIN;
    let found = if short {
        BTreeSet::new()
    } else {
        let found = finds(folder, text)?;
        with_forks(connection, found).map_err(error::open)?
    };
    let threads = if found.len() <= FINDS_MAX {
        let mut threads = pages::of_numbers(connection, &found).map_err(error::open)?;
        threads.retain(|it| pages::wanted(it, query, cursor));
        page::arrange(&mut threads, query);
        threads
    } else {
        let wanted = |number| found.contains(&number);
        pages::threads(connection, query, cursor, wanted).map_err(error::open)?
    };
    Ok(page::of_threads(threads, query))
}

/// The threads that have what was found: its own, and those that took it over.
fn with_forks(connection: &Connection, found: BTreeMap<i64, Seq>) -> Result<BTreeSet<i64>, Error> {
    let mut forks = Vec::new();
    // Where much was found it is quicker to look at every fork than to look for the forks of each.
    let many = found.len() > FINDS_MAX;
    let sql = if many {
        "SELECT number, taken, upto FROM part"
    } else {
        "SELECT number, taken, upto FROM part WHERE taken = ?1"
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut take = |mut rows: rusqlite::Rows<'_>| -> Result<(), Error> {
        while let Some(row) = rows.next()? {
            let upto = Seq(row.get::<_, i64>(2)?.unsigned_abs());
            if found.get(&row.get(1)?).is_some_and(|seq| *seq <= upto) {
                forks.push(row.get(0)?);
            }
        }
        Ok(())
    };
    if many {
        take(statement.query([])?)?;
    } else {
        for number in found.keys() {
            take(statement.query([number])?)?;
        }
    }
    Ok(found.into_keys().chain(forks).collect())
}

/// The numbers under which a text was found, and the first record of each that holds it.
fn finds(folder: &Path, text: &str) -> Result<BTreeMap<i64, Seq>, ReadError> {
    if !folder.join(FILE).exists() {
        return Ok(BTreeMap::new());
    }
    let find = || -> Result<BTreeMap<i64, Seq>, Error> {
        let index = home::open_to_read(folder, FILE)?;
        let made = index
            .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'words'")?
            .exists([])?;
        if !made {
            return Ok(BTreeMap::new());
        }
        let phrase = format!("\"{}\"", text.replace('"', "\"\""));
        let mut statement =
            index.prepare("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid")?;
        let mut rows = statement.query([phrase])?;
        let mut numbers = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let at: i64 = row.get(0)?;
            numbers.entry(at >> key::SEQ_BITS).or_insert(key::seq(at));
        }
        Ok(numbers)
    };
    find().map_err(|error| ReadError::Unavailable(error.to_string()))
}
