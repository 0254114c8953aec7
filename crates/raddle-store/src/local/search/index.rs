//! The index file: trigrams and their positions, but no text.
//!
//! Each record is indexed with two extra words: one for its thread, and one for the block of
//! threads around it. With them a query can be restricted to some threads, and its cost does not
//! grow with all the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use raddle_core::Seq;
use raddle_core::ports::ReadError;
use rusqlite::{Connection, Error, Params, TransactionBehavior, params};

use crate::local::{readonly, rowid};
use crate::page::CHARS_MIN;

/// Name of the file in the journal's folder.
const FILE: &str = "search.sqlite";

/// Schema version that this build writes. A file with another one is recreated.
const VERSION: i64 = 2;

/// Timeout while another process writes.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// Maximum number of records that contain a rare trigram. A search for a rare one reads only those.
const RARE_MAX: i64 = 2000;

/// Maximum number of trigrams of a text that are tested for rarity.
const GRAMS_MAX: usize = 32;

const LAYOUT: &str = "
    CREATE TABLE mark (number INTEGER PRIMARY KEY, upto INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE words USING fts5
        (text, thread, block, content = '', contentless_delete = 1, tokenize = 'trigram');
";

/// Opens the file for writing. Creates it if it is missing, and recreates it if its version
/// differs.
pub(super) fn open_to_write(folder: &Path) -> Result<Connection, Error> {
    let mut connection = Connection::open(folder.join(FILE))?;
    connection.busy_timeout(BUSY_MAX)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? != VERSION {
        transaction.execute_batch("DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS mark;")?;
        transaction.execute_batch(LAYOUT)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// Removes a damaged file. If that fails, opening it fails again and search finds nothing.
pub(super) fn discard(folder: &Path) {
    for name in [FILE, "search.sqlite-wal", "search.sqlite-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

fn version(connection: &Connection) -> Result<i64, Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Adds the text of a record to the index.
pub(super) fn insert(connection: &Connection, at: i64, text: &str) -> Result<(), Error> {
    let number = at >> rowid::SEQ_BITS;
    connection
        .prepare_cached("INSERT INTO words (rowid, text, thread, block) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![at, text, word(number), word(block_of(number))])?;
    Ok(())
}

/// Returns the block of a thread: 4,096 threads with neighbouring numbers.
pub(super) fn block_of(number: i64) -> i64 {
    number >> 12
}

/// Encodes a number as three letters, which the index treats as one word. Unicode has enough
/// letters without case for the highest number of a thread.
fn word(number: i64) -> String {
    const FIRST: u32 = 0x4e00;
    let letters = [18, 9, 0].map(|shift| {
        let digit = u32::try_from(number >> shift & 511).unwrap_or(0);
        char::from_u32(FIRST + digit).unwrap_or_default()
    });
    letters.iter().collect()
}

/// Numbers under which a text was found, each with the first record that contains it.
pub(super) type Matches = BTreeMap<i64, Seq>;

/// Consistent snapshot of the index, for one text.
#[derive(Debug)]
pub(super) struct IndexSnapshot {
    connection: Connection,
    text: String,
}

impl IndexSnapshot {
    /// Opens the index. Returns `None` if there is none yet.
    pub(super) fn open(folder: &Path, text: String) -> Result<Option<Self>, ReadError> {
        if !folder.join(FILE).exists() {
            return Ok(None);
        }
        let open = || -> Result<Option<Connection>, Error> {
            let connection = readonly::open_to_read(folder, FILE)?;
            connection.execute_batch("BEGIN")?;
            Ok((version(&connection)? == VERSION).then_some(connection))
        };
        let connection = open().map_err(unavailable)?;
        Ok(connection.map(|connection| Self { connection, text }))
    }

    /// Returns the watermark of each thread.
    pub(super) fn marks(&self) -> Result<BTreeMap<i64, i64>, ReadError> {
        let marks = || -> Result<_, Error> {
            let mut marks = self.connection.prepare("SELECT number, upto FROM mark")?;
            let marks = marks.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            marks.collect()
        };
        marks().map_err(unavailable)
    }

    /// Whether the text has a trigram that few records contain. Then all matches are found at once;
    /// otherwise that may take time proportional to the number of records.
    pub(super) fn is_rare(&self) -> Result<bool, ReadError> {
        let letters: Vec<char> = self.text.chars().collect();
        let grams: Vec<String> = letters
            .windows(CHARS_MIN)
            .map(|gram| gram.iter().collect())
            .collect();
        for gram in grams.iter().step_by(grams.len().div_ceil(GRAMS_MAX).max(1)) {
            let many = || {
                self.connection
                    .prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1 OFFSET ?2")?
                    .exists(params![match_query(gram), RARE_MAX])
            };
            if !many().map_err(unavailable)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns all matches of the text.
    pub(super) fn all(&self) -> Result<Matches, ReadError> {
        self.find([match_query(&self.text)])
    }

    /// Returns the matches of the text in a block.
    pub(super) fn in_block(&self, block: i64) -> Result<Matches, ReadError> {
        let query = match_query(&self.text);
        self.find([format!("{query} AND block : \"{}\"", word(block))])
    }

    /// Returns the matches of the text under these numbers.
    pub(super) fn among(&self, numbers: impl Iterator<Item = i64>) -> Result<Matches, ReadError> {
        let words: Vec<String> = numbers.map(|it| format!("\"{}\"", word(it))).collect();
        let query = match_query(&self.text);
        self.find([format!("{query} AND thread : ({})", words.join(" OR "))])
    }

    fn find(&self, expression: impl Params) -> Result<Matches, ReadError> {
        let find = || {
            let mut statement = self
                .connection
                .prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid")?;
            let mut rows = statement.query(expression)?;
            let mut matches = Matches::new();
            while let Some(row) = rows.next()? {
                let at: i64 = row.get(0)?;
                let number = at >> rowid::SEQ_BITS;
                matches.entry(number).or_insert(rowid::seq(at));
            }
            Ok(matches)
        };
        find().map_err(unavailable)
    }
}

/// Returns the query for records that contain a text.
fn match_query(text: &str) -> String {
    format!("text : \"{}\"", text.replace('"', "\"\""))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what `map_err` hands over"
)]
fn unavailable(error: Error) -> ReadError {
    ReadError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_word() {
        let numbers = [0, 1, 511, 512, rowid::NUMBER_MAX - 1, rowid::NUMBER_MAX];
        for (at, number) in numbers.into_iter().enumerate() {
            assert_eq!(word(number).chars().count(), CHARS_MIN);
            let others = &numbers[at + 1..];
            assert!(others.iter().all(|other| word(*other) != word(number)));
        }
    }
}
