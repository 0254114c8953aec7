//! Read-only view of a journal in its folder, even while other processes have it open.

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

/// Read-only journal. It creates no file, resumes nothing and waits for no writer. So it works
/// while servers run, and on a folder that cannot be written.
#[derive(Debug)]
pub struct Archive {
    pub(super) connection: Connection,
    pub(super) files: BlobFiles,
    pub(super) folder: PathBuf,
    quarantine: Quarantine,
}

impl Archive {
    /// Opens the journal in a folder. Returns `None` if there is none.
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

    /// Returns every thread, in the order of creation in this journal.
    pub fn threads(&self) -> Result<Vec<ThreadId>, ReadError> {
        let transaction = self.begin()?;
        let mut rows = fence::within(&transaction, &[0; 16], &[0xff; 16]).map_err(error::open)?;
        rows.sort_by_key(UncheckedRow::number);
        Ok(ids(&transaction, rows).collect())
    }

    /// Returns the threads whose id begins with a prefix, at most two of them.
    pub fn find(&self, prefix: &str) -> Result<Vec<ThreadId>, ReadError> {
        let Some((low, high)) = id_range(prefix) else {
            return Ok(Vec::new());
        };
        let transaction = self.begin()?;
        let rows = fence::within(&transaction, &low, &high).map_err(error::open)?;
        Ok(ids(&transaction, rows).take(2).collect())
    }

    /// Returns a page of threads.
    pub fn list(&self, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        self.lists(&*self.begin()?).page(query)
    }

    /// Returns a page of threads that contain a text, up to the point that the search index has
    /// reached. A page may end before it is full; then its cursor continues.
    pub fn search(&self, text: &str, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        search::search(self.lists(&*self.begin()?), &self.folder, text, query)
    }

    /// Returns the amount of stored text that is not yet in the search index.
    pub fn lag(&self) -> Result<Lag, ReadError> {
        Lag::of(&*self.begin()?, &self.files, &self.folder)
    }

    /// Returns a thread as a list shows it, or `None` for a thread that no list shows.
    pub fn summary(&self, thread: ThreadId) -> Result<Option<Summary>, ReadError> {
        let transaction = self.begin()?;
        summary(&transaction, thread)
    }

    /// Returns a page of a thread's turns.
    pub fn turns(&self, thread: ThreadId, query: &PageQuery) -> Result<Page<TurnEntry>, ReadError> {
        let transaction = self.begin()?;
        let row = read::existing(&transaction, thread)?;
        pages::turns(&transaction, &self.files, &row, query)
    }

    /// Returns a page of a thread's items, optionally of one turn.
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

    /// Returns the records after a number: about `bytes_max` bytes, but at least one record if
    /// there is one.
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

    /// Returns the newest base of a thread whose head is not above `at`.
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

    /// Begins a transaction, which reads one consistent snapshot.
    pub(super) fn begin(&self) -> Result<Transaction<'_>, ReadError> {
        self.connection.unchecked_transaction().map_err(error::open)
    }
}

/// Returns a thread as a list shows it.
pub(super) fn summary(
    connection: &Connection,
    thread: ThreadId,
) -> Result<Option<Summary>, ReadError> {
    let row = read::existing(connection, thread)?;
    lists::list_summary(connection, thread, &row).map_err(error::open)
}

/// Returns the ids of the threads that are visible to users.
fn ids(connection: &Connection, rows: Vec<UncheckedRow>) -> impl Iterator<Item = ThreadId> {
    let is_visible = |it: &UncheckedRow| is_for_users(connection, it);
    let visible = rows.into_iter().filter(is_visible);
    visible.map(|it| it.thread)
}

/// Returns the ids of all threads after another one, ascending, except those that are being deleted.
/// A thread whose row is damaged must report its damage when it is read.
pub(super) fn ids_after(
    connection: &Connection,
    after: Option<ThreadId>,
) -> Result<Vec<ThreadId>, ReadError> {
    let first = after.map_or([0; 16], |it| *it.as_uuid().as_bytes());
    let rows = fence::within(connection, &first, &[0xff; 16]).map_err(error::open)?;
    let exists = |it: UncheckedRow| {
        let thread = it.thread;
        let is_known = it.is_known(connection);
        let is_deleting = it.checked().map(|row| row.deleting);
        (!is_deleting.unwrap_or(!is_known)).then_some(thread)
    };
    let ids = rows.into_iter().filter_map(exists);
    let mut ids: Vec<_> = ids.filter(|id| Some(*id) != after).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Whether a thread is visible to users: not being deleted and not still being copied. Only a row
/// with a valid checksum hides a thread; a damaged one must report its damage when it is read.
fn is_for_users(connection: &Connection, unchecked: &UncheckedRow) -> bool {
    let Ok(row) = unchecked.checked() else {
        return unchecked.is_known(connection);
    };
    let listed = summary::list_row(connection, &row);
    let hidden = matches!(listed, Ok(Some(it)) if it.visibility == ListVisibility::Hidden);
    !row.deleting && !hidden
}

/// Returns the lowest and the highest id with a prefix, or `None` if no id can have it.
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
