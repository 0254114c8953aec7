//! Journal on PostgreSQL, shared by many nodes.
//!
//! Every append is one statement: a conditional update of the thread's row, and everything that
//! follows from the records. The row decides which writer succeeds, so nodes need no agreement
//! besides it. Statements of the same connection are pipelined.
//!
//! A commit can survive the loss of power or only that of the process, and that belongs to the
//! connection: see [`connections::Role`]. A node log, which gathers the deltas of all threads of a node in
//! one row, does not exist yet: deltas are rows of their thread.

mod address;
mod append;
mod backoff;
mod blobs;
mod chain;
mod connection;
mod connections;
mod delete;
mod dial;
mod error;
mod event_row;
mod fork;
mod lists;
mod options;
mod pages;
mod read;
mod rebuild;
mod schema;
mod segments;
mod state_cache;
mod statement;
mod summary_row;
mod thread_state;
mod tls;

use std::time::Duration;

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, ForkError, ItemEntry, Journal, ListQuery, Page, PageQuery,
    Pages, ReadError, StoreTimeouts, Summary, TurnEntry,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};

use connections::Connections;
use state_cache::StateCache;

pub use options::FleetOptions;

/// Journal on PostgreSQL.
#[derive(Debug)]
pub struct FleetJournal {
    connections: Connections,
    threads: StateCache,
}

/// Time limits of callers. A change of the primary takes 20 to 30 seconds, and managed databases
/// name up to 120.
const TIMEOUTS: StoreTimeouts = StoreTimeouts {
    start: Duration::from_secs(30),
    outage: Duration::from_secs(120),
    take_over: Duration::from_secs(30),
    probe: Duration::from_secs(20),
};

impl FleetJournal {
    /// Connects to the database, and creates or migrates its tables.
    ///
    /// The connections are tasks of the current runtime.
    pub async fn open(options: &FleetOptions) -> Result<Self, ReadError> {
        let connections = Connections::new(options)?;
        connections.migrate().await.map_err(error::read)?;
        Ok(Self {
            connections,
            threads: StateCache::default(),
        })
    }
}

impl Journal for FleetJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(append::append(self, thread, after, records, class))
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        _former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        // Until deltas are in a node log, raising the fence number is enough: it stops statements
        // of the former owner that are still on their way.
        Box::pin(async move { thread_state::take(self, thread).await.map_err(error::read) })
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(async move { thread_state::head(self, thread).await.map_err(error::read) })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(read::records(self, thread, after, bytes_max))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(read::base(self, thread, at))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(read::save_base(self, thread, base))
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(fork::fork(self, from, at, to))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(delete::delete(self, thread))
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(delete::forget(self, thread, head))
    }

    fn timeouts(&self) -> StoreTimeouts {
        TIMEOUTS
    }
}

impl Pages for FleetJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(lists::list(self, query))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        Box::pin(pages::turns(self, thread, query))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(pages::items(self, thread, turn, query))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(lists::search(self, text, query))
    }
}

impl Blobs for FleetJournal {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(blobs::put(self, thread, bytes, media))
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(blobs::get(self, thread, blob))
    }
}
