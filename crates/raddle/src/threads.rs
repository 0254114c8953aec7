//! Makes the live threads: a journal in the home, and the configured models.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use raddle_agent::{Options, Threads};
use raddle_core::ports::{AppendError, Journal, ReadError, Waiting};
use raddle_core::{Base, Class, Record, Seq, ThreadId, Timestamp};
use raddle_server::Providers;
use raddle_store::{LocalJournal, MemoryJournal};
use tokio::sync::OnceCell;

use crate::model::Configured;

/// The live threads of a home.
pub(crate) fn open(home: &Path, providers: Providers) -> Threads {
    Threads::new(Options {
        journal: Arc::new(Later::new(home.join("threads"))),
        memory: Arc::new(MemoryJournal::new()),
        model: Arc::new(Configured::new(providers)),
        clock: now,
        // Never that of another process, also not of a dead one.
        node: ThreadId::mint().to_string(),
    })
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A journal that is opened when it is first needed: many clients never need it, and a server that is
/// asked who it is should not wait for a disk.
struct Later {
    folder: PathBuf,
    journal: OnceCell<LocalJournal>,
}

impl Later {
    fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            journal: OnceCell::new(),
        }
    }

    async fn get(&self) -> Result<&LocalJournal, ReadError> {
        let open = || async {
            let folder = self.folder.clone();
            let opened = tokio::task::spawn_blocking(move || {
                LocalJournal::open(&raddle_store::Options { folder })
            });
            opened
                .await
                .map_err(|error| ReadError::Unavailable(error.to_string()))?
        };
        self.journal.get_or_try_init(open).await
    }
}

/// What a journal that cannot be opened means to one who wants to append.
fn closed(error: ReadError) -> AppendError {
    match error {
        ReadError::Unavailable(what) => AppendError::Unavailable(what),
        error => AppendError::ReadOnly(error.to_string()),
    }
}

impl Journal for Later {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> Waiting<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let journal = self.get().await.map_err(closed)?;
            journal.append(thread, after, records, class).await
        })
    }

    fn head(&self, thread: ThreadId) -> Waiting<'_, Result<Seq, ReadError>> {
        Box::pin(async move { self.get().await?.head(thread).await })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Waiting<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(async move { self.get().await?.read(thread, after, bytes_max).await })
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> Waiting<'_, Result<Option<Base>, ReadError>> {
        Box::pin(async move { self.get().await?.base(thread, at).await })
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> Waiting<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.get().await.map_err(closed)?;
            journal.save_base(thread, base).await
        })
    }

    fn delete(&self, thread: ThreadId) -> Waiting<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.get().await.map_err(closed)?;
            journal.delete(thread).await
        })
    }
}
