//! A journal as it lies in its folder: to be looked at, never changed, whoever else has it open.

use std::path::{Path, PathBuf};

use raddle_core::ports::{ItemEntry, ListQuery, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Record, Seq, ThreadId, TurnId};
use rusqlite::{Connection, Transaction};

use super::fence::{self, UncheckedRow};
use super::files::BlobFiles;
use super::lists::Lists;
use super::quarantine::Quarantine;
use super::search::{self, Lag};
use super::summary::{self, ListVisibility};
use super::{error, lists, pages, read, schema};

/// A journal that is only looked at. It makes no file, resumes nothing and waits for no writer, so it
/// works beside running servers and on a folder that cannot be written.
#[derive(Debug)]
pub struct Archive {
    pub(super) connection: Connection,
    pub(super) files: BlobFiles,
    pub(super) folder: PathBuf,
    quarantine: Quarantine,
}

impl Archive {
    /// Opens the journal in a folder; nothing if there is none.
    pub fn open(folder: &Path) -> Result<Option<Self>, ReadError> {
        match folder.join(schema::FILE).try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(ReadError::Unavailable(error.to_string())),
        }
        let connection = schema::open_to_read(folder).map_err(error::open)?;
        schema::check_to_read(&connection)?;
        Ok(Some(Self {
            connection,
            files: BlobFiles::new(folder),
            folder: folder.to_owned(),
            quarantine: Quarantine::default(),
        }))
    }

    /// Every thread, in the order in which they came to be here.
    pub fn threads(&self) -> Result<Vec<ThreadId>, ReadError> {
        let transaction = self.begin()?;
        let mut found = fence::within(&transaction, &[0; 16], &[0xff; 16]).map_err(error::open)?;
        found.sort_by_key(UncheckedRow::number);
        Ok(ids(&transaction, found).collect())
    }

    /// The threads whose id begins so; two of them if there are two or more.
    pub fn find(&self, prefix: &str) -> Result<Vec<ThreadId>, ReadError> {
        let Some((low, high)) = id_range(prefix) else {
            return Ok(Vec::new());
        };
        let transaction = self.begin()?;
        let found = fence::within(&transaction, &low, &high).map_err(error::open)?;
        Ok(ids(&transaction, found).take(2).collect())
    }

    /// A page of threads.
    pub fn list(&self, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        self.lists(&*self.begin()?).page(query)
    }

    /// A page of threads that hold a text, as far as the index of words has come. It may end before it is
    /// full; then its cursor goes on.
    pub fn search(&self, text: &str, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        search::search(self.lists(&*self.begin()?), &self.folder, text, query)
    }

    /// What is stored now and not yet in the index of words.
    pub fn lag(&self) -> Result<Lag, ReadError> {
        Lag::of(&*self.begin()?, &self.folder)
    }

    /// A thread as a list shows it; nothing for one that no list shows.
    pub fn summary(&self, thread: ThreadId) -> Result<Option<Summary>, ReadError> {
        let transaction = self.begin()?;
        summary(&transaction, thread)
    }

    /// A page of a thread's turns.
    pub fn turns(&self, thread: ThreadId, query: &PageQuery) -> Result<Page<TurnEntry>, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        pages::turns(&transaction, &self.files, &row, query)
    }

    /// A page of a thread's items; of one turn, if it is named.
    pub fn items(
        &self,
        thread: ThreadId,
        turn: Option<&TurnId>,
        query: &PageQuery,
    ) -> Result<Page<ItemEntry>, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        pages::items(&transaction, &self.files, &row, turn, query)
    }

    /// Records after a number, at most about `bytes_max` of them but at least one if there is one.
    pub fn records(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Result<Vec<Record>, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        read::records(&transaction, &self.files, thread, &row, after, bytes_max)
    }

    /// The newest base of a thread whose head is not above `at`.
    pub fn base(&self, thread: ThreadId, at: Option<Seq>) -> Result<Option<Base>, ReadError> {
        read::base(&*self.begin()?, thread, at)
    }

    fn lists<'a>(&'a self, connection: &'a Connection) -> Lists<'a> {
        Lists {
            connection,
            files: &self.files,
            quarantine: &self.quarantine,
        }
    }

    /// What is read in one transaction is of one moment.
    pub(super) fn begin(&self) -> Result<Transaction<'_>, ReadError> {
        self.connection.unchecked_transaction().map_err(error::open)
    }
}

/// A thread as a list shows it.
pub(super) fn summary(
    connection: &Connection,
    thread: ThreadId,
) -> Result<Option<Summary>, ReadError> {
    let row = read::existing(connection, thread)?;
    lists::shown(connection, thread, &row).map_err(error::open)
}

/// The ids of those threads that are there for their users.
fn ids(connection: &Connection, found: Vec<UncheckedRow>) -> impl Iterator<Item = ThreadId> {
    let there = |it: &UncheckedRow| is_for_users(connection, it);
    let found = found.into_iter().filter(there);
    found.map(|it| it.thread)
}

/// Whether a thread is there for its users: not one that is being deleted, or that is still being copied.
/// Only what bears its checksum hides a thread; what is damaged is to say so when it is read.
fn is_for_users(connection: &Connection, found: &UncheckedRow) -> bool {
    let Ok(row) = found.checked() else {
        return found.is_known(connection);
    };
    let listed = summary::list_row(connection, &row);
    let hidden = matches!(listed, Ok(Some(it)) if it.visibility == ListVisibility::Hidden);
    !row.deleting && !hidden
}

/// The lowest and the highest id that begin so; nothing for what no id begins with.
pub(super) fn id_range(prefix: &str) -> Option<([u8; 16], [u8; 16])> {
    let digits: Vec<u8> = prefix
        .chars()
        .filter(|letter| *letter != '-')
        .map(|letter| letter.to_digit(16).and_then(|it| u8::try_from(it).ok()))
        .collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let pad = |with: u8| {
        let mut id = [0; 16];
        for (at, byte) in id.iter_mut().enumerate() {
            let digit = |at: usize| digits.get(at).copied().unwrap_or(with);
            *byte = digit(2 * at) << 4 | digit(2 * at + 1);
        }
        id
    };
    Some((pad(0), pad(15)))
}
