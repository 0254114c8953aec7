//! Journal on PostgreSQL, shared by many nodes.
//!
//! Every append is one statement: a conditional update of the thread's row, and everything that
//! follows from the records. The row decides which writer succeeds, so nodes need no agreement
//! besides it. Statements of the same connection are pipelined.
//!
//! A commit can survive the loss of power or only that of the process, and that belongs to the
//! connection: see [`connections::Role`].
//!
//! Deltas of all threads of a node are gathered in batches of its [`node_log`]. They follow the head
//! in the thread's row until the next append moves that head.

mod address;
mod append;
mod backoff;
mod blobs;
mod chain;
mod connection;
mod connections;
mod delete;
mod delta_row;
mod dial;
mod durability;
mod error;
mod event_row;
mod fork;
mod lists;
mod node_log;
mod options;
mod pages;
mod read;
mod rebuild;
mod report;
mod schema;
mod segments;
mod state_cache;
mod statement;
mod summary_row;
mod take;
mod text_index;
mod thread_state;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, Durability, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, StoreTimeouts, Summary, TurnEntry,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};

use tokio::task::AbortHandle;

use crate::transfer::ThreadStore;

use connections::Connections;
use durability::MeasuredDurability;
use node_log::NodeLog;
use state_cache::StateCache;
use text_index::IndexSignal;

pub use options::FleetOptions;
pub use report::DatabaseReport;

/// Journal on PostgreSQL.
#[derive(Debug)]
pub struct FleetJournal {
    shared: Arc<SharedJournal>,
    /// Tasks of the node log and of the search index.
    tasks: [AbortHandle; 4],
}

/// State of the journal that its tasks share.
#[derive(Debug)]
struct SharedJournal {
    connections: Connections,
    threads: StateCache,
    node_log: NodeLog,
    durability: MeasuredDurability,
    index_signal: IndexSignal,
}

impl FleetJournal {
    /// Time limits of callers. A change of the primary takes 20 to 30 seconds, and managed databases
    /// name up to 120.
    pub const TIMEOUTS: StoreTimeouts = StoreTimeouts {
        start: Duration::from_secs(30),
        outage: Duration::from_secs(120),
        take_over: Duration::from_secs(30),
        // The page answers before a prober gives up. During a change of the primary the server is not
        // ready.
        probe: Duration::from_secs(3),
    };

    /// Connects to the database, and creates or migrates its tables.
    ///
    /// The connections are tasks of the current runtime.
    pub async fn open(options: &FleetOptions) -> Result<Self, ReadError> {
        let connections = Connections::new(options)?;
        connections.migrate().await.map_err(error::read)?;
        let shared = Arc::new(SharedJournal {
            connections,
            threads: StateCache::default(),
            node_log: NodeLog::default(),
            durability: MeasuredDurability::default(),
            index_signal: IndexSignal::default(),
        });
        durability::measure(&shared).await.map_err(error::read)?;
        let batches = tokio::spawn(node_log::send_batches(Arc::clone(&shared)));
        let upkeep =
            node_log::keep_short(Arc::clone(&shared), options.gathered_max, options.upkeep);
        let upkeep = tokio::spawn(upkeep);
        let ended = node_log::remove_ended(Arc::clone(&shared), options.beat);
        let ended = tokio::spawn(ended);
        let index = tokio::spawn(text_index::keep_indexed(Arc::clone(&shared)));
        let tasks = [batches, upkeep, ended, index];
        Ok(Self {
            shared,
            tasks: tasks.map(|task| task.abort_handle()),
        })
    }

    /// Moves all text that waits for the search index to it, as the journal does after a few seconds.
    /// Search finds the same before and after.
    pub async fn index_texts(&self) -> Result<(), ReadError> {
        let indexed = text_index::index_all(&self.shared).await;
        indexed.map_err(error::read)
    }

    /// Examines a database for its operator, and changes nothing.
    pub async fn examine(options: &FleetOptions) -> Result<DatabaseReport, ReadError> {
        report::report(options).await
    }
}

impl Drop for FleetJournal {
    fn drop(&mut self) {
        // No append waits any more: it would borrow the journal.
        for task in &self.tasks {
            task.abort();
        }
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
        if class == Class::Power {
            self.shared.index_signal.raise();
        }
        Box::pin(append::append(&self.shared, thread, after, records, class))
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        Box::pin(async move {
            let taken = take::take(&self.shared, thread, former).await;
            taken.map_err(error::read)
        })
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(async move {
            let head = thread_state::head(&self.shared, thread).await;
            head.map_err(error::read)
        })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(read::records(&self.shared, thread, after, bytes_max))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(read::base(&self.shared, thread, at))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            // A base is stored only if the thread's row has all its records.
            if self.shared.threads.newest_gathered(thread).is_some() {
                append::flush(&self.shared, thread).await?;
            }
            read::save_base(&self.shared, thread, base).await
        })
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(fork::fork(&self.shared, from, at, to))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(delete::delete(&self.shared, thread))
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(delete::forget(&self.shared, thread, head))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(node_log::close(&self.shared))
    }

    fn timeouts(&self) -> StoreTimeouts {
        Self::TIMEOUTS
    }

    fn durability(&self) -> Durability {
        self.shared.durability.get()
    }
}

impl Pages for FleetJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(lists::list(&self.shared, query))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        Box::pin(pages::turns(&self.shared, thread, query))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(pages::items(&self.shared, thread, turn, query))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(lists::search(&self.shared, text, query))
    }
}

impl Blobs for FleetJournal {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(blobs::put(&self.shared, thread, bytes, media))
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(blobs::get(&self.shared, thread, blob))
    }
}

impl ThreadStore for FleetJournal {
    fn ids(&self, after: Option<ThreadId>) -> BoxFuture<'_, Result<Vec<ThreadId>, ReadError>> {
        Box::pin(async move {
            let ids = thread_state::ids(&self.shared, after).await;
            ids.map_err(error::read)
        })
    }
}
