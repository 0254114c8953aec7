//! A journal in memory that can be slow, away or full.

use std::sync::Arc;

use raddle_core::ports::{AppendError, ForkError, Journal, ReadError, Waiting};
use raddle_core::{Base, Class, Record, Seq, ThreadId};
use raddle_store::MemoryJournal;
use tokio::sync::watch;

/// How the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Well,
    /// Appends wait until this is over.
    Slow,
    Away,
    Full,
}

/// A journal with a mood.
pub struct Faulty {
    inner: MemoryJournal,
    mood: watch::Receiver<Mood>,
}

impl Faulty {
    pub fn new() -> (Arc<Self>, watch::Sender<Mood>) {
        let (set, mood) = watch::channel(Mood::Well);
        let inner = MemoryJournal::new();
        (Arc::new(Self { inner, mood }), set)
    }
}

impl Journal for Faulty {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> Waiting<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let mut mood = self.mood.clone();
            let mood = *mood
                .wait_for(|mood| *mood != Mood::Slow)
                .await
                .expect("a mood");
            match mood {
                Mood::Well | Mood::Slow => self.inner.append(thread, after, records, class).await,
                Mood::Away => Err(AppendError::Unavailable("away".to_owned())),
                Mood::Full => Err(AppendError::Full("no room".to_owned())),
            }
        })
    }

    fn head(&self, thread: ThreadId) -> Waiting<'_, Result<Seq, ReadError>> {
        self.inner.head(thread)
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Waiting<'_, Result<Vec<Record>, ReadError>> {
        self.inner.read(thread, after, bytes_max)
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> Waiting<'_, Result<Option<Base>, ReadError>> {
        self.inner.base(thread, at)
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> Waiting<'_, Result<(), AppendError>> {
        self.inner.save_base(thread, base)
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> Waiting<'_, Result<Seq, ForkError>> {
        self.inner.fork(from, at, to)
    }

    fn delete(&self, thread: ThreadId) -> Waiting<'_, Result<(), AppendError>> {
        self.inner.delete(thread)
    }
}
