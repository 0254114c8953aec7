//! The writer's connection: transactions, their durability, and recovery from disk failures.

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

/// Interval between attempts to clear the WAL while a reader blocks it: writers wait during each.
const CLEAR_PAUSE: Duration = Duration::from_secs(1);

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct WriteConn {
    folder: PathBuf,
    /// `None` after a failure with an unknown outcome, until the file is reopened.
    connection: Option<Connection>,
    /// Durability of a commit with the current setting of the connection.
    synced: Class,
    pub(super) heads: HeadCache,
    growth: Growth,
    /// Whether a checkpoint ran since the last commit.
    checkpointed: bool,
    /// Time at which the WAL is to be cleared, if it may still hold deleted content.
    clear_at: Option<Instant>,
    ops: LogOps,
    /// Whether a commit has an unknown outcome and the file was not reopened since.
    doubt: Arc<AtomicBool>,
}

/// Failure of a transaction: it did not happen, or its outcome is unknown.
#[derive(Debug)]
pub(super) struct TransactionFailure {
    pub(super) error: AppendError,
    /// Whether one of the writes failed, so that the others may succeed without it.
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
            // The state of the WAL is unknown.
            checkpointed: true,
            clear_at: None,
            ops: LogOps::default(),
            doubt: Arc::default(),
        }
    }

    /// Returns the flag that is set while the outcome of a commit is unknown.
    pub(super) fn doubt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.doubt)
    }

    /// Begins a transaction of a durability class.
    pub(super) fn begin(&mut self, class: Class) -> Result<(), TransactionFailure> {
        self.reopen()?;
        let Some(connection) = &self.connection else {
            return Err(closed());
        };
        if self.synced != class {
            let level = match class {
                Class::Power => "full",
                Class::Process => "normal",
            };
            let set = connection.pragma_update(None, "synchronous", level);
            set.map_err(|error| TransactionFailure::from(error::write(&error)))?;
            // Set at once: if the next step fails, the one after it must know the current setting.
            self.synced = class;
        }
        connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut it| it.execute([]))
            .map_err(|error| TransactionFailure::from(error::write(&error)))?;
        let heads = &mut self.heads;
        let begun = heads.refresh(connection).map_err(|it| error::write(&it));
        // A newer process may have migrated the file since the last transaction.
        let begun =
            begun.and_then(|()| schema::check_to_write(connection).map_err(error::not_readable));
        begun.map_err(|error| {
            self.roll_back();
            error.into()
        })
    }

    /// Begins a transaction of class *process*, unless it or its commit may block: on another
    /// process, on a checkpoint, or on the sync of the first commit after a checkpoint. Returns
    /// whether it began.
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
            // Restores the timeout for later transactions. This cannot fail if setting it succeeded
            // before.
            let _ = connection.busy_timeout(schema::BUSY_MAX);
        }
        begun
    }

    /// Whether a checkpoint is due, or ran since the last commit.
    pub(super) fn may_wait(&self) -> bool {
        let clears = self.clear_at.is_some_and(|at| at <= Instant::now());
        self.checkpointed || clears || self.growth.is_near()
    }

    /// Returns the connection and the cache, for use inside a transaction.
    pub(super) fn parts(&mut self) -> Result<(&Connection, &mut HeadCache), TransactionFailure> {
        let connection = self.connection.as_ref().ok_or_else(closed)?;
        Ok((connection, &mut self.heads))
    }

    /// Commits a transaction of about this many bytes.
    pub(super) fn commit(&mut self, bytes: usize) -> Result<(), TransactionFailure> {
        let connection = self.connection.as_ref().ok_or_else(closed)?;
        let Err(error) = (self.ops.commit)(connection) else {
            self.growth.add(bytes);
            self.checkpointed = false;
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

    /// Rolls back the transaction.
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

    /// Checkpoints the WAL when there is enough of it. No caller waits for this.
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
        self.checkpointed = true;
        let result = (self.ops.checkpoint)(connection);
        self.on_checkpoint(result);
    }

    /// Clears deleted content from the WAL. If a reader blocks that, it is retried after later
    /// writes, or closing the file does it: writers do not wait for an export.
    pub(super) fn clear(&mut self) {
        if let Some(connection) = &self.connection {
            self.checkpointed = true;
            let cleared = wal::empty_soon(connection);
            let retry = !matches!(cleared, Ok(false));
            self.clear_at = retry.then(|| Instant::now() + CLEAR_PAUSE);
            self.on_checkpoint(cleared.map(|_| ()));
        }
    }

    /// Handles the result of a checkpoint. After a full disk the WAL is intact and a later attempt
    /// may succeed. After any other failure the WAL may not be intact.
    fn on_checkpoint(&mut self, result: Result<(), rusqlite::Error>) {
        match result.map_err(|error| error::write(&error)) {
            Ok(()) | Err(AppendError::Full(_)) => {}
            Err(_) => self.drop_connection(),
        }
    }

    /// Drops the connection. After a failed sync, the operating system may have dropped the
    /// unsynced pages, and the next sync would succeed without them. So this connection never syncs
    /// again.
    fn drop_connection(&mut self) {
        self.heads.forget();
        if let Some(connection) = self.connection.take() {
            // Closing must not run a checkpoint either. If this setting fails, closing checkpoints
            // the existing pages.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    /// Reopens the file after a failure, and repairs the WAL first.
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
        self.checkpointed = true;
        self.synced = Class::Process;
        self.doubt.store(false, Ordering::Release);
        Ok(())
    }
}

pub(super) fn closed() -> TransactionFailure {
    AppendError::Unavailable("the journal is closed".to_owned()).into()
}

#[cfg(test)]
mod tests;
