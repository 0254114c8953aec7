//! Moves a thread to another store, with its numbers, so that cursors of clients stay valid.
//!
//! The records go to a staged thread of the destination, which no list shows. Its id follows from
//! that of the thread, so a later attempt finds what an interrupted one left. The thread then begins
//! there as a fork of the staged one, in one step. Only when it was read back is the thread of the
//! source marked as deleted, on the condition that it still ends with the same record. So at any
//! moment at least one of the two stores has the whole thread.

use std::collections::BTreeMap;

use raddle_core::ports::{AppendError, Blobs, ForkError, Journal, Pages, ReadError};
use raddle_core::{Class, Event, ItemId, Record, RecordBody, Seq, Thread, ThreadId, Timestamp};
use sha2::{Digest, Sha256};

use crate::blob;

/// Bytes of records that are read and appended at a time.
const PIECE_BYTES: usize = 512 << 10;

/// All ports of a store.
pub trait ThreadStore: Journal + Pages + Blobs {}

impl<T: Journal + Pages + Blobs> ThreadStore for T {}

/// Result of moving a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSummary {
    /// Newest record, under the same number in both stores.
    pub head: Seq,
    /// Number of records.
    pub records: u64,
    /// Number of blobs.
    pub blobs: u64,
}

/// Reason why a thread was not moved. The source has it, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The thread does not exist in the source, or was deleted there.
    #[error("there is no such thread")]
    NotFound,
    /// The destination has another thread with this id, or a newer state of this one.
    #[error(
        "the destination has a thread with this id already, with other records; delete one of them"
    )]
    Exists,
    /// The thread was used in the source while it was copied.
    #[error("the thread was used meanwhile; try again")]
    Changed,
    /// The source could not be read.
    #[error("the source cannot be read")]
    Source(#[source] ReadError),
    /// The source could not be written. The destination may have the thread too; moving it again
    /// removes it from the source.
    #[error(
        "the thread is in the destination, and could not be removed from the source; move it again"
    )]
    NotRemoved(#[source] AppendError),
    /// The destination could not be read.
    #[error("the destination cannot be read")]
    Read(#[source] ReadError),
    /// The destination could not be written.
    #[error("the destination cannot be written")]
    Append(#[source] AppendError),
}

/// A thread that is to be moved, folded from the records of the source.
pub struct Transfer<'a> {
    from: &'a dyn ThreadStore,
    to: &'a dyn ThreadStore,
    id: ThreadId,
    thread: Thread,
}

/// Records of a thread, as far as every store keeps them.
#[derive(Clone, Debug, Default)]
struct Content {
    head: Seq,
    records: u64,
    blobs: u64,
    /// Hash over the events.
    events: Sha256,
    /// Hashes over the deltas of each open item. A store may have deleted those of a settled one.
    deltas: BTreeMap<ItemId, Sha256>,
}

impl Content {
    fn add(&mut self, record: &Record) {
        self.head = record.seq;
        self.records += 1;
        // A record that was read can be written.
        let json = serde_json::to_vec(record).unwrap_or_default();
        match &record.body {
            RecordBody::Event(event) => {
                self.events.update(json);
                if let Some(item) = event.settles() {
                    self.deltas.remove(item);
                }
            }
            RecordBody::Delta(delta) => {
                self.deltas
                    .entry(delta.item.clone())
                    .or_default()
                    .update(json);
            }
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let deltas = |it: &Self| -> Vec<_> {
            let hash = |(item, hash): (&ItemId, &Sha256)| (item.clone(), hash.clone().finalize());
            it.deltas.iter().map(hash).collect()
        };
        self.events.clone().finalize() == other.events.clone().finalize()
            && deltas(self) == deltas(other)
    }
}

impl<'a> Transfer<'a> {
    /// Reads the thread of the source.
    pub async fn open(
        from: &'a dyn ThreadStore,
        to: &'a dyn ThreadStore,
        id: ThreadId,
    ) -> Result<Self, TransferError> {
        let mut thread = Thread::new();
        let base = from.base(id, None).await.map_err(TransferError::Source)?;
        if let Some(base) = base {
            thread = base.thread;
        }
        loop {
            let page = match from.read(id, thread.head(), PIECE_BYTES).await {
                Err(ReadError::NotFound) => return Err(TransferError::NotFound),
                page => page.map_err(TransferError::Source)?,
            };
            if page.is_empty() {
                break;
            }
            for record in &page {
                thread.apply(record);
            }
        }
        // A staged thread, or a fork without records of its own.
        if thread.id() != Some(id) {
            return Err(TransferError::NotFound);
        }
        let transfer = Self {
            from,
            to,
            id,
            thread,
        };
        Ok(transfer)
    }

    /// Node that owns the thread of the source, unless it released it. It must not be alive.
    pub fn owner(&self) -> Option<&str> {
        self.thread.owner()
    }

    /// Moves the thread. `now` is the time of the mark in the source.
    pub async fn run(self, now: Timestamp) -> Result<TransferSummary, TransferError> {
        if self.thread.is_deleted() {
            return self.finish_interrupted().await;
        }
        let (id, owner) = (self.id, self.thread.owner());
        let taken = self.from.take(id, owner).await;
        let head = taken.map_err(TransferError::Source)?;
        if head != self.thread.head() {
            return Err(TransferError::Changed);
        }
        let copied = match self.to.head(id).await.map_err(TransferError::Read)? {
            Seq::ZERO => self.copy().await?,
            // An earlier attempt copied it, and was interrupted.
            _ => self.compare().await?,
        };
        if copied.head != head {
            self.withdraw(copied.head, now).await;
            return Err(TransferError::Changed);
        }
        let base = self.from.base(id, None).await.ok().flatten();
        if let Some(base) = base {
            // The thread opens without it too.
            let _ = self.to.save_base(id, base).await;
        }
        self.remove(head, now).await?;
        Ok(TransferSummary {
            head,
            records: copied.records,
            blobs: copied.blobs,
        })
    }

    /// Copies the thread, and reads it back.
    async fn copy(&self) -> Result<Content, TransferError> {
        let (id, staged) = (self.id, staged_id(self.id));
        let left = self.to.head(staged).await.map_err(TransferError::Read)?;
        if left != Seq::ZERO {
            let deleted = self.to.delete(staged).await;
            deleted.map_err(TransferError::Append)?;
        }
        let mut copied = Content::default();
        loop {
            let read = self.from.read(id, copied.head, PIECE_BYTES).await;
            let page = read.map_err(TransferError::Source)?;
            if page.is_empty() {
                break;
            }
            let after = copied.head;
            for record in &page {
                copied.blobs += self.copy_blobs(staged, record).await?;
                copied.add(record);
            }
            // The fork below survives the loss of power, with everything before it.
            let append = self.to.append(staged, after, &page, Class::Process).await;
            append.map_err(TransferError::Append)?;
        }
        let forked = self.to.fork(staged, copied.head, id).await;
        forked.map_err(|error| match error {
            ForkError::Taken => TransferError::Exists,
            ForkError::Read(error) => TransferError::Read(error),
            ForkError::Append(error) => TransferError::Append(error),
            error @ ForkError::Beyond { .. } => {
                TransferError::Append(AppendError::Unavailable(error.to_string()))
            }
        })?;
        // Rows that the thread shares with it stay. Nothing shows it, if it stays too.
        let _ = self.to.delete(staged).await;
        let stored = self.read_back().await?;
        match stored.is_same(&copied) {
            true => Ok(copied),
            false => {
                let what = "what was read back is not what was copied".to_owned();
                let at = stored.head;
                Err(TransferError::Read(ReadError::Corrupt { at, what }))
            }
        }
    }

    async fn copy_blobs(&self, staged: ThreadId, record: &Record) -> Result<u64, TransferError> {
        let RecordBody::Event(event) = &record.body else {
            return Ok(0);
        };
        let mut count = 0;
        for blob in blob::named(event) {
            let bytes = self.from.get(self.id, blob.clone()).await;
            let bytes = bytes.map_err(TransferError::Source)?;
            let put = self.to.put(staged, bytes, blob.media.clone()).await;
            put.map_err(TransferError::Append)?;
            count += 1;
        }
        Ok(count)
    }

    /// Reads the thread of the destination.
    async fn read_back(&self) -> Result<Content, TransferError> {
        self.read_all(self.to).await.map_err(TransferError::Read)
    }

    async fn read_all(&self, store: &dyn ThreadStore) -> Result<Content, ReadError> {
        let mut all = Content::default();
        loop {
            let page = store.read(self.id, all.head, PIECE_BYTES).await?;
            if page.is_empty() {
                return Ok(all);
            }
            page.iter().for_each(|record| all.add(record));
        }
    }

    /// Compares a thread of the destination with that of the source.
    async fn compare(&self) -> Result<Content, TransferError> {
        let source = self.read_all(self.from).await;
        let source = source.map_err(TransferError::Source)?;
        let stored = self.read_back().await?;
        match stored.is_same(&source) {
            true => Ok(stored),
            false => Err(TransferError::Exists),
        }
    }

    /// Removes the copy, unless somebody used it already.
    async fn withdraw(&self, head: Seq, now: Timestamp) {
        if let Ok(deleted) = mark_deleted(self.to, self.id, head, now).await {
            let _ = self.to.forget(self.id, deleted).await;
        }
    }

    /// Removes the thread of the source, if it still ends with a record.
    async fn remove(&self, head: Seq, now: Timestamp) -> Result<(), TransferError> {
        match mark_deleted(self.from, self.id, head, now).await {
            Ok(deleted) => {
                let forgotten = self.from.forget(self.id, deleted).await;
                forgotten.map_err(TransferError::NotRemoved)
            }
            Err(AppendError::Conflict) => {
                self.withdraw(head, now).await;
                Err(TransferError::Changed)
            }
            Err(error) => Err(TransferError::NotRemoved(error)),
        }
    }

    /// Removes a thread of the source that an interrupted attempt had marked as deleted.
    async fn finish_interrupted(&self) -> Result<TransferSummary, TransferError> {
        let head = self.to.head(self.id).await.map_err(TransferError::Read)?;
        if head == Seq::ZERO {
            // It was deleted, not moved.
            return Err(TransferError::NotFound);
        }
        let stored = self.read_back().await?;
        let forgotten = self.from.forget(self.id, self.thread.head()).await;
        forgotten.map_err(TransferError::NotRemoved)?;
        Ok(TransferSummary {
            head,
            records: stored.records,
            blobs: 0,
        })
    }
}

/// Appends the record that marks a thread as deleted, and returns its number.
async fn mark_deleted(
    store: &dyn ThreadStore,
    id: ThreadId,
    head: Seq,
    now: Timestamp,
) -> Result<Seq, AppendError> {
    let mark = Record {
        seq: head.next(),
        at: now,
        body: Event::Deleted { principal: None }.into(),
    };
    store.append(id, head, &[mark], Class::Power).await
}

/// Returns the id under which a thread is copied.
fn staged_id(thread: ThreadId) -> ThreadId {
    let hash = Sha256::new()
        .chain_update("raddle transfer")
        .chain_update(thread.as_uuid().as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
}
