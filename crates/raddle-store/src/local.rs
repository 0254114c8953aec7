//! A journal in one SQLite file, for everyone who has one machine.
//!
//! One thread of the process writes, and what waits while it commits goes into the next commit. An
//! append of class *power* is synced before it is answered; one of class *process* is in the system's
//! hands when it is answered, and on the disk with the next sync. Other threads read beside it.
//! Several processes may share the folder.

mod append;
mod chain;
mod chores;
mod delete;
mod error;
mod fence;
mod files;
mod key;
mod known;
mod pages;
mod project;
mod read;
mod readers;
mod save;
mod schema;
mod search;
mod writer;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use raddle_core::ports::{
    AppendError, Blobs, Journal, ListQuery, Page, PageQuery, Pages, ReadError, Summary, TurnEntry,
    Waiting,
};
use raddle_core::{Base, Blob, Class, Item, Record, Seq, ThreadId, TurnId};

use crate::blob;
use append::Append;
use files::Files;
use readers::Readers;
use save::{NoteBlob, SaveBase};
use search::Indexer;
use writer::{Write, Writer};

/// Where a local journal is.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
}

/// A journal in one SQLite file.
#[derive(Debug)]
pub struct LocalJournal {
    // In this order they stop: who writes first, then who is told of it.
    writer: Writer,
    indexer: Indexer,
    readers: Readers,
    files: Files,
    folder: PathBuf,
}

impl LocalJournal {
    /// Opens the journal in a folder, and makes it if there is none. Waits for the disk.
    pub fn open(options: &Options) -> Result<Self, ReadError> {
        let folder = &options.folder;
        let unavailable = |error: std::io::Error| ReadError::Unavailable(error.to_string());
        // What people say to an agent is nobody else's business.
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(unavailable)?;
        let lock = lock(folder).map_err(unavailable)?;
        let connection = schema::open_or_create(folder)?;
        drop(lock);
        let files = Files::new(folder);
        let indexer = Indexer::start(folder, files.clone()).map_err(unavailable)?;
        let bell = indexer.bell().clone();
        let writer = Writer::start(folder.clone(), connection, files.clone(), bell);
        Ok(Self {
            writer: writer.map_err(unavailable)?,
            indexer,
            readers: Readers::start(folder).map_err(unavailable)?,
            files,
            folder: folder.clone(),
        })
    }

    async fn put_bytes(&self, bytes: Vec<u8>, media: String) -> Result<Blob, AppendError> {
        let hash = blob::hash(&bytes);
        let name = Blob {
            hash: blob::hex(&hash),
            bytes: bytes.len() as u64,
            media,
        };
        self.write_files(vec![(hash, bytes)]).await?;
        let note = |answer| Write::Blob(NoteBlob(hash), answer);
        self.writer.write(note).await?;
        Ok(name)
    }

    async fn write_files(&self, beside: append::Beside) -> Result<(), AppendError> {
        let files = self.files.clone();
        let written = self.readers.wait(move || {
            let mut beside = beside.iter();
            beside.try_for_each(|(hash, bytes)| files.write(hash, bytes))
        });
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(not_written(&error)),
            Err(error) => Err(AppendError::Unavailable(error.to_string())),
        }
    }
}

/// A file beside the journal could not be written.
fn not_written(error: &std::io::Error) -> AppendError {
    use std::io::ErrorKind;
    let text = error.to_string();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => AppendError::Full(text),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => AppendError::ReadOnly(text),
        _ => AppendError::Unavailable(text),
    }
}

/// Several processes may start on an empty folder at once; one of them makes the file.
fn lock(folder: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(folder.join("journal.lock"))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

impl Journal for LocalJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> Waiting<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let (append, beside) = Append::new(thread, after, records, class)
                .map_err(|error| AppendError::Unavailable(error.to_string()))?;
            if !beside.is_empty() {
                self.write_files(beside).await?;
            }
            let append = |answer| Write::Append(append, answer);
            self.writer.write(append).await
        })
    }

    fn head(&self, thread: ThreadId) -> Waiting<'_, Result<Seq, ReadError>> {
        Box::pin(
            self.readers
                .read(move |connection| read::head(connection, thread)),
        )
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Waiting<'_, Result<Vec<Record>, ReadError>> {
        let files = self.files.clone();
        Box::pin(
            self.readers.read(move |connection| {
                read::records(connection, &files, thread, after, bytes_max)
            }),
        )
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> Waiting<'_, Result<Option<Base>, ReadError>> {
        Box::pin(
            self.readers
                .read(move |connection| read::base(connection, thread, at)),
        )
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> Waiting<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let base = SaveBase::new(thread, &base)
                .map_err(|error| AppendError::Unavailable(error.to_string()))?;
            self.writer.write(|answer| Write::Base(base, answer)).await
        })
    }

    fn delete(&self, thread: ThreadId) -> Waiting<'_, Result<(), AppendError>> {
        let delete = move |answer| Write::Delete(thread, answer);
        Box::pin(self.writer.write(delete))
    }
}

impl Pages for LocalJournal {
    fn list(&self, query: ListQuery) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(
            self.readers
                .read(move |connection| pages::list(connection, &query)),
        )
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<TurnEntry>, ReadError>> {
        let turns = move |connection: &_| pages::turns(connection, thread, &query);
        Box::pin(self.readers.read(turns))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<Item>, ReadError>> {
        let files = self.files.clone();
        Box::pin(self.readers.read(move |connection| {
            pages::items(connection, &files, thread, turn.as_ref(), &query)
        }))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        self.indexer.bell().hurry();
        let folder = self.folder.clone();
        Box::pin(
            self.readers
                .read(move |connection| search::search(connection, &folder, &text, &query)),
        )
    }
}

impl Blobs for LocalJournal {
    fn put(&self, bytes: Vec<u8>, media: String) -> Waiting<'_, Result<Blob, AppendError>> {
        Box::pin(self.put_bytes(bytes, media))
    }

    fn get(&self, blob: Blob) -> Waiting<'_, Result<Vec<u8>, ReadError>> {
        let files = self.files.clone();
        Box::pin(async move {
            let hash = blob::parse(&blob.hash).ok_or(ReadError::NotFound)?;
            let bytes = self.readers.wait(move || files.read(&hash)).await?;
            bytes.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => ReadError::NotFound,
                std::io::ErrorKind::InvalidData => read::corrupt(Seq::ZERO, error.to_string()),
                _ => ReadError::Unavailable(error.to_string()),
            })
        })
    }
}
