//! In-memory journal with injected faults, for tests of error handling.

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, Durability, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, StoreTimeouts, Summary, TurnEntry, ends_for_lack_of_space,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};
use tokio::sync::watch;

use crate::MemoryJournal;

/// Behaviour of a [`FaultyJournal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMode {
    /// All calls succeed, as with a [`MemoryJournal`].
    Healthy,
    /// Writes wait until the mode changes.
    Slow,
    /// Writes and reads fail.
    Unavailable,
    /// Writes fail because the disk is full.
    Full,
    /// Writes fail because the disk is full, except the end of a turn that fails for that reason.
    Reserve,
    /// Writes fail because the journal is read-only.
    ReadOnly,
    /// Nothing is written, the outcome of a write is unknown, and reads fail.
    Lost,
    /// Nothing is written. The outcome of a write is unknown until the head is read.
    Dropping,
    /// Everything is written. The outcome of a write is unknown until the head is read.
    Unacknowledged,
}

/// In-memory journal with a [`FaultMode`]. It starts as [`FaultMode::Healthy`]. Clones are handles of
/// the same journal, with the same mode.
#[derive(Clone, Debug)]
pub struct FaultyJournal {
    inner: MemoryJournal,
    mode: watch::Sender<FaultMode>,
    durability: watch::Sender<Durability>,
}

impl Default for FaultyJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl FaultyJournal {
    /// Creates an empty, healthy journal.
    pub fn new() -> Self {
        Self {
            inner: MemoryJournal::new(),
            mode: watch::Sender::new(FaultMode::Healthy),
            durability: watch::Sender::new(Durability::Local),
        }
    }

    /// Sets the mode for all later calls and for waiting writes.
    pub fn set(&self, mode: FaultMode) {
        self.mode.send_replace(mode);
    }

    /// Sets the durability that the journal reports.
    pub fn set_durability(&self, durability: Durability) {
        self.durability.send_replace(durability);
    }

    /// Returns the number of writes that wait for a slow journal.
    pub fn waiting(&self) -> usize {
        self.mode.receiver_count()
    }

    async fn write<'a, T, E: From<AppendError>>(
        &'a self,
        may_use_reserve: bool,
        write: impl FnOnce(&'a MemoryJournal) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        let mut modes = self.mode.subscribe();
        // The sender lives as long as this journal.
        let mode = modes.wait_for(|mode| *mode != FaultMode::Slow).await;
        let mode = mode.map_or(FaultMode::Unavailable, |mode| *mode);
        drop(modes);
        let why = "the test injected a fault".to_owned();
        match mode {
            FaultMode::Healthy | FaultMode::Slow => write(&self.inner).await,
            FaultMode::Reserve if may_use_reserve => write(&self.inner).await,
            FaultMode::Unavailable => Err(AppendError::Unavailable(why).into()),
            FaultMode::Full | FaultMode::Reserve => Err(AppendError::Full(why).into()),
            FaultMode::ReadOnly => Err(AppendError::ReadOnly(why).into()),
            FaultMode::Lost | FaultMode::Dropping => Err(AppendError::Unknown(why).into()),
            FaultMode::Unacknowledged => {
                write(&self.inner).await?;
                Err(AppendError::Unknown(why).into())
            }
        }
    }

    async fn read<'a, T>(
        &'a self,
        read: impl FnOnce(&'a MemoryJournal) -> BoxFuture<'a, Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        if matches!(
            *self.mode.borrow(),
            FaultMode::Unavailable | FaultMode::Lost
        ) {
            return Err(ReadError::Unavailable(
                "the test injected a fault".to_owned(),
            ));
        }
        read(&self.inner).await
    }
}

impl Journal for FaultyJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let may_use_reserve = ends_for_lack_of_space(records);
        let append = move |inner: &'a MemoryJournal| inner.append(thread, after, records, class);
        Box::pin(self.write(may_use_reserve, append))
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        Box::pin(self.read(move |inner| inner.take(thread, former)))
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(self.read(move |inner| inner.head(thread)))
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(self.read(move |inner| inner.read(thread, after, bytes_max)))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(self.read(move |inner| inner.base(thread, at)))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(self.write(false, move |inner| inner.save_base(thread, base)))
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(self.write(false, move |inner| inner.fork(from, at, to)))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(self.write(false, move |inner| inner.delete(thread)))
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(self.write(false, move |inner| inner.forget(thread, head)))
    }

    fn timeouts(&self) -> StoreTimeouts {
        self.inner.timeouts()
    }

    fn durability(&self) -> Durability {
        *self.durability.borrow()
    }
}

impl Pages for FaultyJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(self.read(move |inner| inner.list(query)))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        Box::pin(self.read(move |inner| inner.turns(thread, query)))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(self.read(move |inner| inner.items(thread, turn, query)))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(self.read(move |inner| inner.search(text, query)))
    }
}

impl Blobs for FaultyJournal {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(self.write(false, move |inner| inner.put(thread, bytes, media)))
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(self.read(move |inner| inner.get(thread, blob)))
    }
}
