//! The index's file: which three letters follow one another where, and no text.
//!
//! Beside the letters of a record stand two words that say whose it is: one for its thread and one for
//! the thousands of threads around it. With them the index can be asked about some threads, and what
//! that costs does not grow with all the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use raddle_core::Seq;
use raddle_core::ports::ReadError;
use rusqlite::{Connection, Error, Params, TransactionBehavior, params};

use crate::local::{readonly, rowid};
use crate::page::LETTERS_MIN;

/// The file's name in the journal's folder.
const FILE: &str = "search.sqlite";

/// The layout that this version writes. A file with another is made anew.
const VERSION: i64 = 2;

/// How long to wait while another process writes.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// Three letters that so many records have are rare: who looks for them need look at no others.
const RARE_MAX: i64 = 2000;

/// Of how many three letters of a text is asked whether they are rare.
const GRAMS_MAX: usize = 32;

const LAYOUT: &str = "
    CREATE TABLE mark (number INTEGER PRIMARY KEY, upto INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE words USING fts5
        (text, thread, block, content = '', contentless_delete = 1, tokenize = 'trigram');
";

/// Opens the file for writing; makes it if it is not there, and anew if its layout is another.
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

/// Removes a file that is damaged. If it stays, opening it fails again and search finds nothing.
pub(super) fn throw_away(folder: &Path) {
    for name in [FILE, "search.sqlite-wal", "search.sqlite-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

fn version(connection: &Connection) -> Result<i64, Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Takes in the words of a record.
pub(super) fn insert(connection: &Connection, at: i64, text: &str) -> Result<(), Error> {
    let number = at >> rowid::SEQ_BITS;
    connection
        .prepare_cached("INSERT INTO words (rowid, text, thread, block) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![at, text, word(number), word(block_of(number))])?;
    Ok(())
}

/// The threads around a number: 4,096 of them.
pub(super) fn block_of(number: i64) -> i64 {
    number >> 12
}

/// A number as three letters, which the index takes as one word. There are enough letters without case
/// for the highest number of a thread.
fn word(number: i64) -> String {
    const FIRST: u32 = 0x4e00;
    let letters = [18, 9, 0].map(|shift| {
        let digit = u32::try_from(number >> shift & 511).unwrap_or(0);
        char::from_u32(FIRST + digit).unwrap_or_default()
    });
    letters.iter().collect()
}

/// The numbers under which a text was found, and the first record of each that holds it.
pub(super) type Matches = BTreeMap<i64, Seq>;

/// The index as it is at one moment, asked for one text.
#[derive(Debug)]
pub(super) struct IndexSnapshot {
    connection: Connection,
    text: String,
}

impl IndexSnapshot {
    /// Nothing if there is no index yet.
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

    /// How far the index has come with each thread.
    pub(super) fn marks(&self) -> Result<BTreeMap<i64, i64>, ReadError> {
        let marks = || -> Result<_, Error> {
            let mut marks = self.connection.prepare("SELECT number, upto FROM mark")?;
            let marks = marks.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            marks.collect()
        };
        marks().map_err(unavailable)
    }

    /// Whether the text has three letters that few records have. Then all of it is found at once; otherwise
    /// that may take as long as there are records.
    pub(super) fn is_rare(&self) -> Result<bool, ReadError> {
        let letters: Vec<char> = self.text.chars().collect();
        let grams: Vec<String> = letters
            .windows(LETTERS_MIN)
            .map(|gram| gram.iter().collect())
            .collect();
        for gram in grams.iter().step_by(grams.len().div_ceil(GRAMS_MAX).max(1)) {
            let many = || {
                self.connection
                    .prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1 OFFSET ?2")?
                    .exists(params![holds(gram), RARE_MAX])
            };
            if !many().map_err(unavailable)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Everything that holds the text.
    pub(super) fn all(&self) -> Result<Matches, ReadError> {
        self.find([holds(&self.text)])
    }

    /// What holds the text in a block.
    pub(super) fn in_block(&self, block: i64) -> Result<Matches, ReadError> {
        let holds = holds(&self.text);
        self.find([format!("{holds} AND block : \"{}\"", word(block))])
    }

    /// What holds the text under these numbers.
    pub(super) fn among(&self, numbers: impl Iterator<Item = i64>) -> Result<Matches, ReadError> {
        let words: Vec<String> = numbers.map(|it| format!("\"{}\"", word(it))).collect();
        let holds = holds(&self.text);
        self.find([format!("{holds} AND thread : ({})", words.join(" OR "))])
    }

    fn find(&self, what: impl Params) -> Result<Matches, ReadError> {
        let find = || {
            let mut statement = self
                .connection
                .prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid")?;
            let mut rows = statement.query(what)?;
            let mut found = Matches::new();
            while let Some(row) = rows.next()? {
                let at: i64 = row.get(0)?;
                let number = at >> rowid::SEQ_BITS;
                found.entry(number).or_insert(rowid::seq(at));
            }
            Ok(found)
        };
        find().map_err(unavailable)
    }
}

/// What is asked of the index: records that hold a text.
fn holds(text: &str) -> String {
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
            assert_eq!(word(number).chars().count(), LETTERS_MIN);
            let others = &numbers[at + 1..];
            assert!(others.iter().all(|other| word(*other) != word(number)));
        }
    }
}
