//! The journal of the configured store.

use std::path::PathBuf;

use raddle_config::{PostgresStore, StoreSetting};
use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, Durability, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, StoreTimeouts, Summary, TurnEntry,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};
use raddle_rpc::Connection;
use raddle_store::{LocalJournal, NodeLock, ThreadStore};
use tokio::sync::{OnceCell, mpsc};

use super::peers::{open_listener, stopped};
use crate::postgres;

/// A journal that is opened on first use: many clients never need it, and `initialize` should not
/// wait for a disk or a database.
pub(super) struct LazyJournal {
    /// Folder of the home's threads, which has the lock of each node.
    folder: PathBuf,
    store: StoreSetting,
    node: String,
    peer_connections: mpsc::Sender<Connection>,
    cell: OnceCell<OpenJournal>,
}

/// An open journal, and the lock that marks this node as alive, taken before the first write.
struct OpenJournal {
    journal: Box<dyn ThreadStore>,
    _alive: Option<NodeLock>,
}

impl LazyJournal {
    pub(super) fn new(
        folder: PathBuf,
        store: StoreSetting,
        node: String,
        peer_connections: mpsc::Sender<Connection>,
    ) -> Self {
        Self {
            folder,
            store,
            node,
            peer_connections,
            cell: OnceCell::new(),
        }
    }

    async fn opened(&self) -> Result<&dyn ThreadStore, ReadError> {
        let open = || async {
            match &self.store {
                StoreSetting::Local => self.open_local().await.map_err(advised),
                StoreSetting::Postgres(store) => self.open_postgres(store).await,
            }
        };
        let opened = self.cell.get_or_try_init(open).await?;
        Ok(&*opened.journal)
    }

    async fn open_local(&self) -> Result<OpenJournal, ReadError> {
        let options = raddle_store::Options {
            folder: self.folder.clone(),
        };
        let opened = tokio::task::spawn_blocking(move || LocalJournal::open(&options));
        let journal = opened.await.map_err(stopped)??;
        // A node that cannot write owns no thread, and no peer connects to it.
        let alive = match journal.is_writable() {
            true => Some(self.announce().await?),
            false => None,
        };
        Ok(OpenJournal {
            journal: Box::new(journal),
            _alive: alive,
        })
    }

    async fn open_postgres(&self, store: &PostgresStore) -> Result<OpenJournal, ReadError> {
        let journal = postgres::open(store).await?;
        let store = store.clone();
        tokio::spawn(async move { postgres::log_findings(&store).await });
        Ok(OpenJournal {
            journal,
            _alive: Some(self.announce().await?),
        })
    }

    /// Marks this node as alive, and lets the other processes of the home connect before they can
    /// see it.
    async fn announce(&self) -> Result<NodeLock, ReadError> {
        open_listener(&self.folder, &self.node, self.peer_connections.clone());
        let (folder, node) = (self.folder.clone(), self.node.clone());
        let lock = tokio::task::spawn_blocking(move || NodeLock::take(&folder, &node));
        let lock = lock.await.map_err(stopped)?;
        lock.map_err(|error| ReadError::Unavailable(error.to_string()))
    }
}

/// Adds the remedy to the error of a home that cannot be used.
fn advised(error: ReadError) -> ReadError {
    match error {
        ReadError::Unusable(what) => ReadError::Unusable(format!(
            "{what}; give this user write access to that folder, or name another home with RADDLE_HOME"
        )),
        error => error,
    }
}

/// Maps an error from opening the journal to one for writing, of which nothing was stored.
fn closed(error: ReadError) -> AppendError {
    match error {
        ReadError::Unavailable(what) => AppendError::Unavailable(what),
        ReadError::Newer(what) => AppendError::Newer(what),
        error => AppendError::ReadOnly(error.to_string()),
    }
}

impl Journal for LazyJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.append(thread, after, records, class).await
        })
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        Box::pin(async move { self.opened().await?.take(thread, former).await })
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(async move { self.opened().await?.head(thread).await })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(async move { self.opened().await?.read(thread, after, bytes_max).await })
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(async move { self.opened().await?.base(thread, at).await })
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.save_base(thread, base).await
        })
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(async move { self.opened().await?.fork(from, at, to).await })
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.delete(thread).await
        })
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.forget(thread, head).await
        })
    }

    /// Returns the limits of the store, which need not be open for that.
    fn timeouts(&self) -> StoreTimeouts {
        match self.store {
            StoreSetting::Local => StoreTimeouts::LOCAL,
            StoreSetting::Postgres(_) => postgres::TIMEOUTS,
        }
    }

    fn durability(&self) -> Durability {
        match (&self.store, self.cell.get()) {
            (StoreSetting::Local, _) => Durability::Local,
            (StoreSetting::Postgres(_), None) => Durability::Pending,
            (StoreSetting::Postgres(_), Some(opened)) => opened.journal.durability(),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(opened) = self.cell.get() {
                opened.journal.close().await;
            }
        })
    }
}

impl Pages for LazyJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(async move { self.opened().await?.list(query).await })
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        Box::pin(async move { self.opened().await?.turns(thread, query).await })
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(async move { self.opened().await?.items(thread, turn, query).await })
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(async move { self.opened().await?.search(text, query).await })
    }
}

impl Blobs for LazyJournal {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.put(thread, bytes, media).await
        })
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(async move { self.opened().await?.get(thread, blob).await })
    }
}
