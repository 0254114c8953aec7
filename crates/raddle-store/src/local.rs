//! A journal in one SQLite file, for a single machine.
//!
//! One thread of the process writes. Requests that arrive during a commit go into the next commit.
//! Small appends of text are written on the caller's thread while the writer is idle. An append of
//! class *power* is synced before it is acknowledged. One of class *process* is in the operating
//! system's buffers when it is acknowledged, and on the disk with the next sync. Other threads read
//! concurrently. Several processes may share the folder.

mod append;
mod archive;
mod background_jobs;
mod chain;
mod delete;
mod error;
mod export;
mod fence;
mod files;
mod fork;
mod head;
mod head_cache;
mod import;
mod kind_index;
mod lists;
mod pages;
mod project;
mod quarantine;
mod read;
mod reader_pool;
mod readonly;
mod reserve;
mod row_codec;
mod rowid;
mod salvage;
mod save;
mod schema;
mod search;
mod segments;
mod summary;
mod verify;
mod wal;
mod write_conn;
mod writer;

pub use archive::Archive;
pub use salvage::{Inventory, Salvage};
pub use search::Lag;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, Durability, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, StoreTimeouts, Summary, TurnEntry, ends_for_lack_of_space,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, TurnId};

use crate::blob;
use crate::transfer::ThreadStore;
use append::Append;
use files::BlobFiles;
use fork::Fork;
use lists::Lists;
use quarantine::Quarantine;
use reader_pool::ReaderPool;
use reserve::Reserve;
use save::{NoteBlob, SaveBase};
use search::Indexer;
use writer::{JournalWriter, WriteRequest};

/// Location of a local journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the journal. It is created if it is missing.
    pub folder: PathBuf,
}

impl Options {
    /// Returns the path of the SQLite file.
    pub fn file(&self) -> PathBuf {
        self.folder.join(schema::FILE)
    }
}

/// Bytes per page when reading the thread to fork.
const FORK_PAGE_BYTES: usize = 256 << 10;

/// A journal in one SQLite file.
#[derive(Debug)]
pub struct LocalJournal {
    // Drop order matters: the writer stops last, so that its WAL is checkpointed and removed,
    // unless another process has the file open. A read-only connection cannot do that.
    readers: ReaderPool,
    indexer: Indexer,
    writer: JournalWriter,
    files: BlobFiles,
    folder: PathBuf,
    quarantine: Quarantine,
    reserve: Reserve,
}

impl LocalJournal {
    /// Opens the journal in a folder, and creates it if there is none. Blocks on the disk.
    ///
    /// A journal that cannot be written is opened for reading.
    pub fn open(options: &Options) -> Result<Self, ReadError> {
        let folder = &options.folder;
        if let Some(why) = readonly::readonly_reason(folder) {
            return Self::open_readonly(folder, &why);
        }
        // Conversations with an agent are private to their owner.
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let not_opened = |error: std::io::Error| error::folder(folder, &error);
        builder.create(folder).map_err(not_opened)?;
        let lock = lock(folder).map_err(not_opened)?;
        let connection = schema::open_or_create(folder)?;
        drop(lock);
        let reserve = Reserve::new(folder);
        if let Err(error) = reserve.fill() {
            tracing::warn!(%error, "the disk reserve cannot be filled; writes are rejected until there is space");
        }
        let files = BlobFiles::new(folder);
        let indexer = Indexer::start(folder, files.clone()).map_err(unavailable)?;
        let signal = indexer.signal().clone();
        let quarantine = Quarantine::default();
        let writer = JournalWriter::start(
            folder.clone(),
            connection,
            files.clone(),
            signal,
            quarantine.clone(),
        );
        Ok(Self {
            writer: writer.map_err(unavailable)?,
            indexer,
            readers: ReaderPool::start(folder).map_err(unavailable)?,
            files,
            folder: folder.clone(),
            quarantine,
            reserve,
        })
    }

    /// Opens the journal in a folder for reading only. Every append is rejected and nothing is
    /// written: no file is created, no schema migrated, no interrupted work resumed.
    pub fn open_to_read(options: &Options) -> Result<Self, ReadError> {
        Self::open_readonly(&options.folder, "it was opened for reading only")
    }

    fn open_readonly(folder: &Path, why: &str) -> Result<Self, ReadError> {
        let connection = schema::open_to_read(folder).map_err(error::open)?;
        schema::check_to_read(&connection)?;
        Ok(Self {
            writer: JournalWriter::none(why),
            indexer: Indexer::none(),
            readers: ReaderPool::start(folder).map_err(unavailable)?,
            files: BlobFiles::new(folder),
            folder: folder.to_owned(),
            quarantine: Quarantine::default(),
            reserve: Reserve::none(folder),
        })
    }

    /// Whether the journal accepts appends at all.
    pub fn is_writable(&self) -> bool {
        self.writer.check_open().is_ok()
    }

    /// Reopens the file after a commit with an unknown outcome, because only then the head is
    /// known.
    async fn settle(&self, thread: ThreadId) -> Result<(), ReadError> {
        if !self.writer.is_in_doubt() {
            return Ok(());
        }
        // An empty append reopens the file. Its result does not matter, only that it got that far.
        let answer = self
            .try_append(thread, Seq::ZERO, &[], Class::Process)
            .await;
        if !self.writer.is_in_doubt() {
            return Ok(());
        }
        let why = answer.err().map(|error| format!(": {error}"));
        let what = format!(
            "the outcome of the last write is unknown{}",
            why.unwrap_or_default()
        );
        Err(ReadError::Unavailable(what))
    }

    async fn put_bytes(&self, bytes: Vec<u8>, media: String) -> Result<Blob, AppendError> {
        self.require_reserve().await?;
        let hash = blob::hash(&bytes);
        let name = Blob {
            hash: blob::hex(&hash),
            bytes: bytes.len() as u64,
            media,
        };
        self.write_files(vec![(hash, bytes)]).await?;
        let request = |answer| WriteRequest::Blob(NoteBlob(hash), answer);
        self.writer.write(request).await?;
        Ok(name)
    }

    async fn fork_at(&self, from: ThreadId, at: Seq, to: ThreadId) -> Result<Seq, ForkError> {
        let head = self.head(from).await?;
        if at > head {
            // The read returns the right error if there is no such thread.
            self.read(from, head, 0).await?;
            return Err(ForkError::Beyond { head });
        }
        self.require_reserve().await?;
        let summary = self.summary_at(from, at).await?;
        let open = move |connection: &_| fork::open_text(connection, from, at);
        let (number, open) = self.readers.read(open).await?;
        let mut fork = Fork {
            from,
            at,
            to,
            number,
            summary: summary.map(Box::new),
            open: Vec::new(),
            before: None,
            more: true,
        };
        let mut pieces = fork::pieces(open).into_iter();
        let mut head = Seq::ZERO;
        while let Some(open) = pieces.next() {
            fork.open = open;
            fork.more = pieces.len() > 0;
            let piece = fork.clone();
            let forked = self
                .writer
                .write(|answer| WriteRequest::Fork(piece, answer));
            let forked = forked.await??;
            head = forked.head;
            fork.before = Some(forked);
        }
        Ok(head)
    }

    /// Returns the summary of a thread that ends at a record.
    async fn summary_at(&self, thread: ThreadId, at: Seq) -> Result<Option<Summary>, ReadError> {
        let base = self.base(thread, Some(at)).await?;
        let mut after = base.as_ref().map_or(Seq::ZERO, |it| it.thread.head());
        let mut summary = base.and_then(|base| Summary::of(&base.thread));
        loop {
            let page = self.read(thread, after, FORK_PAGE_BYTES).await?;
            for record in page.iter().take_while(|record| record.seq <= at) {
                Summary::fold(&mut summary, record);
            }
            match page.last() {
                Some(last) if last.seq < at => after = last.seq,
                _ => return Ok(summary),
            }
        }
    }

    /// Rejects a write that must not use the reserved space while the reserve is not filled.
    async fn require_reserve(&self) -> Result<(), AppendError> {
        if self.reserve.is_whole() {
            return Ok(());
        }
        let reserve = self.reserve.clone();
        match self.readers.wait(move || reserve.fill()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error::file_write(&error)),
            Err(error) => Err(AppendError::Unavailable(error.to_string())),
        }
    }

    async fn try_append(
        &self,
        thread: ThreadId,
        after: Seq,
        records: &[Record],
        class: Class,
    ) -> Result<Seq, AppendError> {
        let (append, body_files) = Append::new(thread, after, records, class)
            .map_err(|error| AppendError::Unavailable(error.to_string()))?;
        if !body_files.is_empty() {
            self.write_files(body_files).await?;
        }
        if let Some(outcome) = self.writer.append_now(&append) {
            return outcome;
        }
        let append = |answer| WriteRequest::Append(append, answer);
        self.writer.write(append).await
    }

    async fn write_files(&self, body_files: append::BodyFiles) -> Result<(), AppendError> {
        self.writer.check_open()?;
        let files = self.files.clone();
        let written = self.readers.wait(move || {
            let mut body_files = body_files.iter();
            body_files.try_for_each(|(hash, bytes)| files.write(hash, bytes))
        });
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error::file_write(&error)),
            Err(error) => Err(AppendError::Unavailable(error.to_string())),
        }
    }
}

fn unavailable(error: std::io::Error) -> ReadError {
    ReadError::Unavailable(error.to_string())
}

/// Takes the lock for creating the file. Several processes may start on an empty folder at once,
/// and one of them creates the file.
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
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            if !ends_for_lack_of_space(records) {
                self.require_reserve().await?;
                return self.try_append(thread, after, records, class).await;
            }
            let appended = self.try_append(thread, after, records, class).await;
            match appended {
                Err(AppendError::Full(why)) if self.reserve.release() => {
                    tracing::warn!(%thread, why, "the disk is full: using the reserved space");
                    self.try_append(thread, after, records, class).await
                }
                appended => appended,
            }
        })
    }

    /// Returns the head, which is known once an unknown outcome is settled. No delta of the former
    /// node is gathered outside the thread.
    fn take<'a>(
        &'a self,
        thread: ThreadId,
        _former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        self.head(thread)
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(async move {
            self.settle(thread).await?;
            let head = move |connection: &_| head::of_thread(connection, thread);
            self.readers.read(head).await
        })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        let (files, quarantine) = (self.files.clone(), self.quarantine.clone());
        Box::pin(self.readers.read(move |connection| {
            let row = read::existing(connection, thread)?;
            let records = read::records(connection, &files, thread, &row, after, bytes_max);
            quarantine.note(row.number, records)
        }))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(
            self.readers
                .read(move |connection| read::base(connection, thread, at)),
        )
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            self.require_reserve().await?;
            let base = SaveBase::new(thread, &base)
                .map_err(|error| AppendError::Unavailable(error.to_string()))?;
            self.writer
                .write(|answer| WriteRequest::Base(base, answer))
                .await
        })
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(self.fork_at(from, at, to))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        let delete = self
            .writer
            .write(move |answer| WriteRequest::Delete(thread, None, answer));
        Box::pin(delete)
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        let delete = self
            .writer
            .write(move |answer| WriteRequest::Delete(thread, Some(head), answer));
        Box::pin(delete)
    }

    fn timeouts(&self) -> StoreTimeouts {
        StoreTimeouts::LOCAL
    }

    fn durability(&self) -> Durability {
        Durability::Local
    }
}

impl Pages for LocalJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        let (files, quarantine) = (self.files.clone(), self.quarantine.clone());
        Box::pin(self.readers.read(move |connection| {
            let lists = Lists {
                connection,
                files: &files,
                quarantine: &quarantine,
            };
            lists.page(&query)
        }))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        let (files, quarantine) = (self.files.clone(), self.quarantine.clone());
        Box::pin(self.readers.read(move |connection| {
            let row = read::existing(connection, thread)?;
            let turns = pages::turns(connection, &files, &row, &query);
            quarantine.note(row.number, turns)
        }))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        let (files, quarantine) = (self.files.clone(), self.quarantine.clone());
        Box::pin(self.readers.read(move |connection| {
            let row = read::existing(connection, thread)?;
            let items = pages::items(connection, &files, &row, turn.as_ref(), &query);
            quarantine.note(row.number, items)
        }))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        self.indexer.signal().hurry();
        let folder = self.folder.clone();
        let (files, quarantine) = (self.files.clone(), self.quarantine.clone());
        Box::pin(self.readers.read(move |connection| {
            let lists = Lists {
                connection,
                files: &files,
                quarantine: &quarantine,
            };
            search::search(lists, &folder, &text, &query)
        }))
    }
}

/// A home has one tenant, so its threads share the bytes of equal blobs, and a blob is not looked up
/// by its thread.
impl Blobs for LocalJournal {
    fn put(
        &self,
        _thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(self.put_bytes(bytes, media))
    }

    fn get(&self, _thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
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

impl ThreadStore for LocalJournal {
    fn ids(&self, after: Option<ThreadId>) -> BoxFuture<'_, Result<Vec<ThreadId>, ReadError>> {
        Box::pin(
            self.readers
                .read(move |connection| archive::ids_after(connection, after)),
        )
    }
}

#[cfg(test)]
mod tests;
