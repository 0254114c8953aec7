//! One connection to the database.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement};

use super::error::QueryFailure;
use super::tls::TlsDialer;

/// Value of a parameter.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// Maximum number of prepared statements of a connection. There are a few dozen different ones.
const STATEMENTS_MAX: usize = 200;

/// Connection, and the task that reads and writes its socket.
///
/// A statement is never canceled: an append whose wait for the standby is canceled is answered as a
/// success. A connection that is too slow is dropped instead.
pub(super) struct Connection {
    client: Client,
    task: AbortHandle,
    /// Whether the task was told to end. It may take a moment.
    has_ended: AtomicBool,
    /// Whether the server did not answer in time.
    has_timed_out: AtomicBool,
    /// Number of warnings that the server sent.
    warnings: Arc<AtomicU64>,
    statements: Mutex<HashMap<String, Statement>>,
    statement_max: Duration,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end();
    }
}

impl Connection {
    /// Connects, and starts the task of the connection.
    pub(super) async fn open(
        config: &Config,
        tls: &TlsDialer,
        statement_max: Duration,
    ) -> Result<Self, QueryFailure> {
        let connected = config.connect(tls.clone()).await;
        let (client, mut io) = connected.map_err(|error| QueryFailure::before_sending(&error))?;
        let warnings = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&warnings);
        let task = tokio::spawn(async move {
            // The answers of a statement are read in order: a warning that belongs to a commit is
            // counted before the statement completes.
            while let Some(message) = poll_fn(|context| io.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) if is_warning(&notice) => {
                        tracing::warn!(code = notice.code().code(), "{}", notice.message());
                        counter.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database ended");
                        break;
                    }
                }
            }
        });
        Ok(Self {
            client,
            task: task.abort_handle(),
            has_ended: AtomicBool::new(false),
            has_timed_out: AtomicBool::new(false),
            warnings,
            statements: Mutex::default(),
            statement_max,
        })
    }

    /// Drops the socket. Statements without an answer end with [`QueryFailure::Lost`].
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.task.abort();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst) || self.client.is_closed() || self.task.is_finished()
    }

    /// Runs a statement, and returns its rows once the server has committed it.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryFailure> {
        self.query_within(self.statement_max, sql, params).await
    }

    /// Runs a statement with a time limit of its own.
    pub(super) async fn query_within(
        &self,
        limit: Duration,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryFailure> {
        let statement = self.prepare(sql).await?;
        if self.is_closed() {
            return Err(closed());
        }
        let warnings = self.warnings.load(Ordering::SeqCst);
        let answer = tokio::time::timeout(limit, self.client.query(&statement, params)).await;
        let result = match answer {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(QueryFailure::after_sending(&error)),
            Err(_) => Err(self.timed_out(limit)),
        };
        self.conclude(result, warnings)
    }

    /// Runs a command without parameters or rows.
    pub(super) async fn command(&self, sql: &str) -> Result<(), QueryFailure> {
        if self.is_closed() {
            return Err(closed());
        }
        let warnings = self.warnings.load(Ordering::SeqCst);
        let limit = self.statement_max;
        let answer = tokio::time::timeout(limit, self.client.batch_execute(sql)).await;
        let result = match answer {
            Ok(result) => result.map_err(|error| QueryFailure::after_sending(&error)),
            Err(_) => Err(self.timed_out(limit)),
        };
        self.conclude(result, warnings)
    }

    /// Whether the connection was dropped because the server did not answer. Only the first call
    /// returns it.
    pub(super) fn take_timeout(&self) -> bool {
        self.has_timed_out.swap(false, Ordering::SeqCst)
    }

    fn timed_out(&self, limit: Duration) -> QueryFailure {
        // Other statements of the connection may time out with it.
        if !self.has_ended.load(Ordering::SeqCst) {
            self.has_timed_out.store(true, Ordering::SeqCst);
        }
        QueryFailure::Lost(format!("the database did not answer within {limit:?}"))
    }

    /// Turns a success with a warning into an unknown outcome, and drops a connection that must not
    /// be used again.
    fn conclude<T>(
        &self,
        result: Result<T, QueryFailure>,
        warnings: u64,
    ) -> Result<T, QueryFailure> {
        let result = if self.warnings.load(Ordering::SeqCst) == warnings {
            result
        } else {
            result.and(Err(QueryFailure::Lost(
                "the database answered with a warning".to_owned(),
            )))
        };
        if result.as_ref().is_err_and(QueryFailure::ends_connection) {
            self.end();
        }
        result
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, QueryFailure> {
        if let Some(known) = self.statements().get(sql) {
            return Ok(known.clone());
        }
        if self.is_closed() {
            return Err(closed());
        }
        let prepared = tokio::time::timeout(self.statement_max, self.client.prepare(sql)).await;
        let statement = match prepared {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => {
                let failure = QueryFailure::before_sending(&error);
                if failure.ends_connection() {
                    self.end();
                }
                return Err(failure);
            }
            Err(_) => {
                self.end();
                let what = "the database did not answer in time".to_owned();
                return Err(QueryFailure::NotSent(what));
            }
        };
        let mut statements = self.statements();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> QueryFailure {
    QueryFailure::NotSent("the connection to the database is closed".to_owned())
}

/// Whether a notice may say that a commit is less durable than requested. Unknown severities count.
fn is_warning(notice: &DbError) -> bool {
    !matches!(
        notice.parsed_severity(),
        Some(Severity::Notice | Severity::Info | Severity::Log | Severity::Debug)
    )
}
