//! The file as its one writer holds it: transactions, what they survive, and what is done when the disk
//! fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use raddle_core::Class;
use raddle_core::ports::AppendError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::head_cache::HeadCache;
use super::quarantine::Quarantine;
use super::wal::{self, Growth, LogOps};
use super::{error, schema};

/// How long after a reader was in the way clearing the log is tried again: each time, those who write wait.
const CLEAR_PAUSE: Duration = Duration::from_secs(1);

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct WriteConn {
    folder: PathBuf,
    /// Nothing after a failure that left the file in doubt, until it was opened again.
    connection: Option<Connection>,
    /// What a commit survives as the connection is set now.
    synced: Class,
    /// What is remembered of threads.
    pub(super) heads: HeadCache,
    growth: Growth,
    /// Whether the log was moved since the last commit.
    moved: bool,
    /// When the log is to be cleared, if it may still hold what was deleted.
    clear_at: Option<Instant>,
    ops: LogOps,
    /// Whether a commit was begun of which nobody knows what came, and the file was not opened since.
    doubt: Arc<AtomicBool>,
}

/// Why nothing of a transaction happened, or nobody knows.
#[derive(Debug)]
pub(super) struct TransactionFailure {
    pub(super) error: AppendError,
    /// Whether it was one of the writes that failed, so that the others may succeed without it.
    pub(super) by_one: bool,
}

impl From<AppendError> for TransactionFailure {
    fn from(error: AppendError) -> Self {
        Self {
            error,
            by_one: false,
        }
    }
}

impl WriteConn {
    pub(super) fn new(folder: PathBuf, connection: Connection, quarantine: Quarantine) -> Self {
        Self {
            folder,
            connection: Some(connection),
            synced: Class::Process,
            heads: HeadCache::new(quarantine),
            growth: Growth::default(),
            // Nobody knows how the log was left.
            moved: true,
            clear_at: None,
            ops: LogOps::default(),
            doubt: Arc::default(),
        }
    }

    /// Set as long as nobody knows what came of a commit.
    pub(super) fn doubt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.doubt)
    }

    /// Begins a transaction that survives what it must.
    pub(super) fn begin(&mut self, class: Class) -> Result<(), TransactionFailure> {
        self.reopen()?;
        let Some(connection) = &self.connection else {
            return Err(nothing());
        };
        if self.synced != class {
            let level = match class {
                Class::Power => "full",
                Class::Process => "normal",
            };
            let set = connection.pragma_update(None, "synchronous", level);
            set.map_err(|error| TransactionFailure::from(error::write(&error)))?;
            // Noted at once: should the next step fail, the one after it must know how things stand.
            self.synced = class;
        }
        connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut it| it.execute([]))
            .map_err(|error| TransactionFailure::from(error::write(&error)))?;
        let known = &mut self.heads;
        let begun = known.refresh(connection).map_err(|it| error::write(&it));
        // A newer process may have brought the file up to date since the last time.
        let begun =
            begun.and_then(|()| schema::check_to_write(connection).map_err(error::not_readable));
        begun.map_err(|error| {
            self.roll_back();
            error.into()
        })
    }

    /// Begins a transaction that survives the process, unless that or its commit may take waiting: for another
    /// process, for the log to be moved, or for the sync with which it begins anew after that.
    pub(super) fn begin_now(&mut self) -> bool {
        if self.may_wait() {
            return false;
        }
        let Some(connection) = &self.connection else {
            return false;
        };
        if connection.busy_timeout(Duration::ZERO).is_err() {
            return false;
        }
        let begun = self.begin(Class::Process).is_ok();
        if let Some(connection) = &self.connection {
            // Without this the next one to wait would not; setting it cannot fail once it did not.
            let _ = connection.busy_timeout(schema::BUSY_MAX);
        }
        begun
    }

    /// Whether something is to be done with the log, or was done since the last commit.
    pub(super) fn may_wait(&self) -> bool {
        let clears = self.clear_at.is_some_and(|at| at <= Instant::now());
        self.moved || clears || self.growth.is_near()
    }

    /// What runs inside a transaction needs these.
    pub(super) fn parts(&mut self) -> Result<(&Connection, &mut HeadCache), TransactionFailure> {
        let connection = self.connection.as_ref().ok_or_else(nothing)?;
        Ok((connection, &mut self.heads))
    }

    /// Commits about so many bytes.
    pub(super) fn commit(&mut self, bytes: usize) -> Result<(), TransactionFailure> {
        let connection = self.connection.as_ref().ok_or_else(nothing)?;
        let Err(error) = (self.ops.commit)(connection) else {
            self.growth.add(bytes);
            self.moved = false;
            return Ok(());
        };
        let error = error::commit(&error);
        let by_one = matches!(error, AppendError::Full(_));
        if matches!(error, AppendError::Unknown(_)) {
            self.doubt.store(true, Ordering::Release);
            self.drop_connection();
        } else {
            self.roll_back();
        }
        Err(TransactionFailure { error, by_one })
    }

    /// Undoes what was begun.
    pub(super) fn roll_back(&mut self) {
        self.heads.forget();
        let Some(connection) = &self.connection else {
            return;
        };
        // SQLite itself rolls back after some failures.
        if !connection.is_autocommit() && connection.execute("ROLLBACK", []).is_err() {
            self.drop_connection();
        }
    }

    /// Moves the log into the file when there is enough of it. Nobody waits for this.
    pub(super) fn checkpoint(&mut self) {
        if self.clear_at.is_some_and(|at| at <= Instant::now()) {
            self.clear();
        }
        if !self.growth.is_due() {
            return;
        }
        let Some(connection) = &self.connection else {
            return;
        };
        self.moved = true;
        let tended = (self.ops.checkpoint)(connection);
        self.on_checkpoint(tended);
    }

    /// Clears the log of what was deleted. If a reader is in the way, that is tried again after later
    /// writes, or closing the file does it: those who write do not wait for an export.
    pub(super) fn clear(&mut self) {
        if let Some(connection) = &self.connection {
            self.moved = true;
            let cleared = wal::empty_soon(connection);
            let again = !matches!(cleared, Ok(false));
            self.clear_at = again.then(|| Instant::now() + CLEAR_PAUSE);
            self.on_checkpoint(cleared.map(|_| ()));
        }
    }

    /// What is done when the log could not be moved. A full disk may have room later, and the log is
    /// still there; after anything else it may not be.
    fn on_checkpoint(&mut self, tended: Result<(), rusqlite::Error>) {
        match tended.map_err(|error| error::write(&error)) {
            Ok(()) | Err(AppendError::Full(_)) => {}
            Err(_) => self.drop_connection(),
        }
    }

    /// Lets go of the connection. After a sync that failed, the system may have dropped what was to be
    /// synced, and the next sync would succeed over the hole: this connection gets no other.
    fn drop_connection(&mut self) {
        self.heads.forget();
        if let Some(connection) = self.connection.take() {
            // Closing must not move the log either. Should this fail, it moves what is there.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    /// Opens the file again after a failure, with a log that is made whole first.
    fn reopen(&mut self) -> Result<(), TransactionFailure> {
        if self.connection.is_some() {
            return Ok(());
        }
        let connection =
            schema::open_to_write(&self.folder).map_err(|error| error::write(&error))?;
        if let Err(error) = wal::renew(&connection, &self.folder) {
            self.connection = Some(connection);
            self.drop_connection();
            return Err(error.into());
        }
        self.connection = Some(connection);
        self.moved = true;
        self.synced = Class::Process;
        self.doubt.store(false, Ordering::Release);
        Ok(())
    }
}

pub(super) fn nothing() -> TransactionFailure {
    AppendError::Unavailable("the journal is closed".to_owned()).into()
}

#[cfg(test)]
mod tests;
