//! Connections by role. A shared connection is opened again when it is used after it has ended.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use raddle_core::ports::ReadError;
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Row;

use super::backoff::Backoff;
use super::connection::{Connection, Param};
use super::dial::Dialer;
use super::error::QueryFailure;
use super::options::FleetOptions;
use super::schema;

/// Use of a connection, which decides what its commits survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Appends to the rows of threads. They survive the loss of power, and of the primary.
    Events,
    /// Batches of the node log, which survive the loss of this process, and derived data.
    Deltas,
    /// Reads. They are read from the primary, because a standby is behind.
    Reads,
    /// Transactions of several statements, one at a time.
    Work,
}

/// Maximum number of attempts when the database aborts a statement in favour of another.
const ATTEMPTS_MAX: usize = 8;

/// Time after a failed attempt to connect in which callers get the same failure at once.
const REDIAL_AFTER: Duration = Duration::from_millis(250);

/// All connections of a journal.
#[derive(Debug)]
pub(super) struct Connections {
    dialer: Arc<Dialer>,
    events: Vec<SharedConnection>,
    deltas: SharedConnection,
    /// Batches of the node log, which wait for no other statement.
    batches: SharedConnection,
    reads: Vec<SharedConnection>,
    /// Next connection for a read.
    next_read: AtomicUsize,
    /// Searches, which take longer than other reads.
    search: SharedConnection,
    /// Bytes of blobs, behind which no other statement waits.
    blobs: SharedConnection,
    work: WorkConnection,
    /// Transactions of the search index, behind which no fork waits.
    index: WorkConnection,
}

impl Connections {
    /// Creates the connections, none of which is open yet.
    pub(super) fn new(options: &FleetOptions) -> Result<Self, ReadError> {
        let dialer = Arc::new(Dialer::new(options)?);
        let shared = |role| SharedConnection::new(&dialer, role);
        let events = (0..options.event_connections.max(1)).map(|_| shared(Role::Events));
        let reads = (0..options.read_connections.max(1)).map(|_| shared(Role::Reads));
        Ok(Self {
            events: events.collect(),
            deltas: shared(Role::Deltas),
            batches: shared(Role::Deltas),
            reads: reads.collect(),
            next_read: AtomicUsize::new(0),
            search: shared(Role::Reads),
            blobs: shared(Role::Events),
            work: WorkConnection::new(&dialer),
            index: WorkConnection::new(&dialer),
            dialer,
        })
    }

    /// Creates the tables or migrates them, and checks that the database can be used.
    pub(super) async fn migrate(&self) -> Result<(), QueryFailure> {
        let connection = self.dialer.connect_unchecked(Role::Work).await?;
        schema::migrate(&connection, &self.dialer.schema).await?;
        self.deltas.connection().await?;
        Ok(())
    }

    /// Returns the connection for appends of a thread that survive the loss of power: the least busy,
    /// and of several always the same. The server commits the statements of one connection one after
    /// another, so a thread would wait for the disk as often as there are others before it.
    pub(super) fn events(&self, thread: ThreadId) -> &SharedConnection {
        let mut hasher = DefaultHasher::new();
        thread.as_uuid().hash(&mut hasher);
        let count = self.events.len();
        let first = (hasher.finish() % count as u64) as usize;
        let now = Instant::now();
        let ring = (1..count).map(|at| &self.events[(first + at) % count]);
        ring.fold(&self.events[first], |best, next| {
            if next.load(now) < best.load(now) {
                next
            } else {
                best
            }
        })
    }

    pub(super) fn deltas(&self) -> &SharedConnection {
        &self.deltas
    }

    /// Returns the connection for batches of the node log.
    pub(super) fn batches(&self) -> &SharedConnection {
        &self.batches
    }

    /// Returns the time for one statement.
    pub(super) fn statement_max(&self) -> Duration {
        self.dialer.statement_max
    }

    pub(super) fn reads(&self) -> &SharedConnection {
        let next = self.next_read.fetch_add(1, Ordering::Relaxed);
        &self.reads[next % self.reads.len()]
    }

    pub(super) fn search(&self) -> &SharedConnection {
        &self.search
    }

    pub(super) fn blobs(&self) -> &SharedConnection {
        &self.blobs
    }

    /// Begins a transaction, alone on its connection.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, QueryFailure> {
        self.work.begin(&self.dialer).await
    }

    /// Begins a transaction of the search index.
    pub(super) async fn begin_index(&self) -> Result<Transaction<'_>, QueryFailure> {
        self.index.begin(&self.dialer).await
    }
}

/// A connection for transactions, one at a time.
#[derive(Debug)]
struct WorkConnection {
    slot: Mutex<Option<Connection>>,
    backoff: Backoff,
}

impl WorkConnection {
    fn new(dialer: &Dialer) -> Self {
        Self {
            slot: Mutex::default(),
            backoff: Backoff::new(dialer.statement_max),
        }
    }

    async fn begin(&self, dialer: &Dialer) -> Result<Transaction<'_>, QueryFailure> {
        let mut slot = self.slot.lock().await;
        // A connection is put back after a commit only.
        let connection = match slot.take().filter(|it| !it.is_closed()) {
            Some(connection) => connection,
            None => {
                self.backoff.check(Instant::now())?;
                dialer.connect(Role::Work).await.map_err(unsent)?
            }
        };
        connection.command("BEGIN").await.map_err(unsent)?;
        let backoff = &self.backoff;
        Ok(Transaction {
            slot,
            connection,
            backoff,
        })
    }
}

/// Transaction of several statements. If it is dropped, so is its connection, and the server rolls
/// it back.
#[derive(Debug)]
pub(super) struct Transaction<'a> {
    slot: MutexGuard<'a, Option<Connection>>,
    connection: Connection,
    backoff: &'a Backoff,
}

impl Transaction<'_> {
    /// Runs a statement. Whatever fails before the commit has no effect.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryFailure> {
        let result = self.connection.query(sql, params).await;
        self.note_timeout();
        result.map_err(unsent)
    }

    /// Commits, and keeps the connection for the next transaction.
    pub(super) async fn commit(mut self) -> Result<(), QueryFailure> {
        let committed = self.connection.command("COMMIT").await;
        self.note_timeout();
        committed?;
        self.backoff.succeeded();
        *self.slot = Some(self.connection);
        Ok(())
    }

    fn note_timeout(&self) {
        if self.connection.take_timeout() {
            self.backoff.timed_out(Instant::now());
        }
    }
}

/// A connection that many callers share, pipelined.
#[derive(Debug)]
pub(super) struct SharedConnection {
    dialer: Arc<Dialer>,
    role: Role,
    backoff: Backoff,
    /// Number of statements that wait for their answers.
    running: AtomicUsize,
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    /// Last failed attempt to connect.
    failed: Option<(Instant, QueryFailure)>,
}

impl SharedConnection {
    fn new(dialer: &Arc<Dialer>, role: Role) -> Self {
        Self {
            dialer: Arc::clone(dialer),
            role,
            backoff: Backoff::new(dialer.statement_max),
            running: AtomicUsize::new(0),
            slot: Mutex::default(),
        }
    }

    /// Returns how busy the connection is. One that pauses after a timeout comes last: it answers at
    /// once that it does not work.
    fn load(&self, now: Instant) -> (bool, usize) {
        let is_paused = self.backoff.check(now).is_err();
        (is_paused, self.running.load(Ordering::Relaxed))
    }

    /// Runs a statement. Repeats it if the database aborted it in favour of another.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryFailure> {
        self.query_within(self.dialer.statement_max, sql, params)
            .await
    }

    /// Runs a statement with a time limit of its own.
    pub(super) async fn query_within(
        &self,
        limit: Duration,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryFailure> {
        self.running.fetch_add(1, Ordering::Relaxed);
        let _running = RunningStatement(&self.running);
        let mut attempts = 1;
        loop {
            let connection = self.connection().await?;
            let result = connection.query_within(limit, sql, params).await;
            if result.is_ok() {
                self.backoff.succeeded();
            } else if connection.take_timeout() {
                self.backoff.timed_out(Instant::now());
            }
            match result {
                Err(failure) if failure.is_serialization() && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    /// Returns the connection, connecting if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, QueryFailure> {
        let mut slot = self.slot.lock().await;
        if let Some(connection) = slot.connection.as_ref().filter(|it| !it.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        slot.connection = None;
        self.backoff.check(Instant::now())?;
        if let Some((at, failure)) = &slot.failed
            && at.elapsed() < REDIAL_AFTER
        {
            return Err(failure.clone());
        }
        match self.dialer.connect(self.role).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                slot.failed = None;
                slot.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                let failure = unsent(failure);
                slot.failed = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }
}

/// A statement that waits for its answer, until it is dropped.
struct RunningStatement<'a>(&'a AtomicUsize);

impl Drop for RunningStatement<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Turns a lost answer into the failure of a statement without effect: the transaction of the
/// statement is never committed, or it only reads.
fn unsent(failure: QueryFailure) -> QueryFailure {
    match failure {
        QueryFailure::Lost(what) => QueryFailure::NotSent(what),
        other => other,
    }
}
