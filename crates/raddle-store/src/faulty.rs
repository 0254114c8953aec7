//! A journal in memory that fails as it is told to, for whoever wants to know what they do then.

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, ForkError, ItemEntry, Journal, ListQuery, Page, PageQuery,
    Pages, ReadError, Summary, TurnEntry, ends_for_lack_of_space,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};
use tokio::sync::watch;

use crate::MemoryJournal;

/// What a [`FaultyJournal`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMode {
    /// It works.
    Healthy,
    /// Whoever writes waits until the mood is another.
    Slow,
    /// Nothing can be written or read.
    Unavailable,
    /// There is no room for more.
    Full,
    /// There is no room for more, except for the end of a turn that fails because of it.
    Reserve,
    /// Nothing can be written any more.
    ReadOnly,
    /// Nothing is written, but that is not known, and nothing can be read.
    Lost,
    /// Nothing is written, but that is not known until the head is read.
    Dropping,
    /// Everything is written, but that is not known until the head is read.
    Unacknowledged,
}

/// A journal in memory with a mood. It begins well.
#[derive(Debug)]
pub struct FaultyJournal {
    inner: MemoryJournal,
    mode: watch::Sender<FaultMode>,
}

impl Default for FaultyJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl FaultyJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self {
            inner: MemoryJournal::new(),
            mode: watch::Sender::new(FaultMode::Healthy),
        }
    }

    /// From now on it is like this, also for those who wait.
    pub fn set(&self, mood: FaultMode) {
        self.mode.send_replace(mood);
    }

    /// How many wait for a slow journal.
    pub fn waiting(&self) -> usize {
        self.mode.receiver_count()
    }

    async fn write<'a, T, E: From<AppendError>>(
        &'a self,
        may_use_reserve: bool,
        write: impl FnOnce(&'a MemoryJournal) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        let mut moods = self.mode.subscribe();
        // The sender lives as long as this journal.
        let mood = moods.wait_for(|mood| *mood != FaultMode::Slow).await;
        let mood = mood.map_or(FaultMode::Unavailable, |mood| *mood);
        drop(moods);
        let why = "it was told to fail".to_owned();
        match mood {
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
            return Err(ReadError::Unavailable("it was told to fail".to_owned()));
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
    fn put(&self, bytes: Vec<u8>, media: String) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(self.write(false, move |inner| inner.put(bytes, media)))
    }

    fn get(&self, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(self.read(move |inner| inner.get(blob)))
    }
}
