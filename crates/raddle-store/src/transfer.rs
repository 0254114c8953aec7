//! Moves a thread to another store, with its numbers, so that cursors of clients stay valid.
//!
//! The records go to a staged thread of the destination, which no list shows. Its id follows from
//! that of the thread, so a later attempt finds what an interrupted one left. The thread then begins
//! there as a fork of the staged one, in one step. Only when it was read back is the thread of the
//! source marked as deleted, on the condition that it still ends with the same record. So at any
//! moment at least one of the two stores has the whole thread.

use std::collections::BTreeMap;

use raddle_core::ports::{AppendError, Blobs, BoxFuture, ForkError, Journal, Pages, ReadError};
use raddle_core::{Class, Event, ItemId, Record, RecordBody, Seq, Thread, ThreadId, Timestamp};
use sha2::{Digest, Sha256};

use crate::blob;

/// Number that no record reaches.
const SEQ_MAX: Seq = Seq(u64::MAX);

/// Bytes of records that are read and appended at a time.
const PIECE_BYTES: usize = 512 << 10;

/// All ports of a store.
pub trait ThreadStore: Journal + Pages + Blobs {
    /// Returns ids of threads after another one, ascending; none after the last. They are those of
    /// all tenants, and also those of threads that no list shows: one that an interrupted move has
    /// marked as deleted, and one whose list entry is damaged.
    fn ids(&self, after: Option<ThreadId>) -> BoxFuture<'_, Result<Vec<ThreadId>, ReadError>>;
}

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
    #[error("there is no such thread; it may be moved already")]
    NotFound,
    /// The destination has another thread with this id, or a newer state of this one.
    #[error(
        "the destination has a thread with this id already, with other records; delete one of them"
    )]
    Exists,
    /// Both stores are the same.
    #[error("the threads are there already")]
    SameStore,
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
    /// Number of the record that marks it as deleted, which does not count.
    deleted: Option<Seq>,
    /// Hash over the events.
    events: Sha256,
    /// Hashes over the deltas of each open item. A store may have deleted those of a settled one.
    deltas: BTreeMap<ItemId, Sha256>,
}

impl Content {
    fn add(&mut self, record: &Record) {
        if let RecordBody::Event(event) = &record.body
            && matches!(**event, Event::Deleted { .. })
        {
            self.deleted = Some(record.seq);
            return;
        }
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
        self.has_events_of(other) && deltas(self) == deltas(other)
    }

    fn has_events_of(&self, other: &Self) -> bool {
        self.events.clone().finalize() == other.events.clone().finalize()
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
        self.ensure_other_store(now).await?;
        let moved = match self.thread.is_deleted() {
            true => self.finish_interrupted().await,
            false => self.copy_and_remove(now).await,
        };
        // Rows that the thread shares with it stay. Nothing shows it, if it stays too.
        let _ = self.to.delete(staged_id(self.id)).await;
        moved
    }

    async fn copy_and_remove(&self, now: Timestamp) -> Result<TransferSummary, TransferError> {
        let (id, owner) = (self.id, self.thread.owner());
        let taken = self.from.take(id, owner).await;
        let head = taken.map_err(TransferError::Source)?;
        if head != self.thread.head() {
            return Err(TransferError::Changed);
        }
        let copied = match self.find_copy(head, now).await? {
            Some(copied) => copied,
            None => self.copy().await?,
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

    /// Fails if both stores are the same: two addresses may lead to one database. Then a thread would
    /// be found to be copied already, and removed.
    async fn ensure_other_store(&self, now: Timestamp) -> Result<(), TransferError> {
        let probe = ThreadId::mint();
        let records = [Record {
            seq: Seq::ZERO.next(),
            at: now,
            // Without a start, the thread is in no list.
            body: Event::Released {}.into(),
        }];
        let append = self.to.append(probe, Seq::ZERO, &records, Class::Power);
        append.await.map_err(TransferError::Append)?;
        let seen = self.from.head(probe).await;
        let deleted = self.to.delete(probe).await;
        if seen.map_err(TransferError::Source)? != Seq::ZERO {
            return Err(TransferError::SameStore);
        }
        deleted.map_err(TransferError::Append)
    }

    /// Returns the copy that an interrupted attempt made, if it is complete. Removes one that is not:
    /// the thread was used since in the source, or the copy was about to be removed.
    async fn find_copy(&self, head: Seq, now: Timestamp) -> Result<Option<Content>, TransferError> {
        let newest = self.to.head(self.id).await.map_err(TransferError::Read)?;
        if newest == Seq::ZERO {
            return Ok(None);
        }
        let stored = self.read_back().await?;
        let source = read_upto(self.from, self.id, stored.head).await;
        let source = source.map_err(TransferError::Source)?;
        if !stored.has_events_of(&source) {
            return Err(TransferError::Exists);
        }
        if let Some(deleted) = stored.deleted {
            let forgotten = self.to.forget(self.id, deleted).await;
            forgotten.map_err(TransferError::Append)?;
            return Ok(None);
        }
        if stored.head == head && stored.is_same(&source) {
            return Ok(Some(stored));
        }
        match delete_at(self.to, self.id, newest, now).await {
            Ok(()) => Ok(None),
            // Somebody uses it.
            Err(AppendError::Conflict) => Err(TransferError::Exists),
            Err(error) => Err(TransferError::Append(error)),
        }
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
        let stored = read_upto(self.to, self.id, SEQ_MAX).await;
        stored.map_err(TransferError::Read)
    }

    /// Removes the copy, unless somebody used it already.
    async fn withdraw(&self, head: Seq, now: Timestamp) {
        // A copy that stays is removed by the next attempt.
        let _ = delete_at(self.to, self.id, head, now).await;
    }

    /// Removes the thread of the source, if it still ends with a record.
    async fn remove(&self, head: Seq, now: Timestamp) -> Result<(), TransferError> {
        match delete_at(self.from, self.id, head, now).await {
            Ok(()) => Ok(()),
            Err(AppendError::Conflict) => match self.is_in_source().await {
                // Another attempt to move the thread has ended, so the copy is the thread.
                Ok(false) => Ok(()),
                Ok(true) => {
                    self.withdraw(head, now).await;
                    Err(TransferError::Changed)
                }
                Err(error) => Err(TransferError::Source(error)),
            },
            Err(error) => Err(TransferError::NotRemoved(error)),
        }
    }

    /// Whether the source has the thread, and not only its mark.
    async fn is_in_source(&self) -> Result<bool, ReadError> {
        match read_upto(self.from, self.id, SEQ_MAX).await {
            Ok(content) => Ok(content.deleted.is_none()),
            Err(ReadError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a thread of the source that an interrupted attempt had marked as deleted.
    async fn finish_interrupted(&self) -> Result<TransferSummary, TransferError> {
        let newest = self.to.head(self.id).await.map_err(TransferError::Read)?;
        if newest == Seq::ZERO {
            // It was deleted, not moved.
            return Err(TransferError::NotFound);
        }
        let source = read_upto(self.from, self.id, SEQ_MAX).await;
        let source = source.map_err(TransferError::Source)?;
        let stored = read_upto(self.to, self.id, source.head).await;
        let stored = stored.map_err(TransferError::Read)?;
        if !stored.has_events_of(&source) {
            return Err(TransferError::Exists);
        }
        let forgotten = self.from.forget(self.id, self.thread.head()).await;
        forgotten.map_err(TransferError::NotRemoved)?;
        Ok(TransferSummary {
            head: source.head,
            records: source.records,
            blobs: 0,
        })
    }
}

/// Reads a thread up to a number.
async fn read_upto(store: &dyn ThreadStore, id: ThreadId, upto: Seq) -> Result<Content, ReadError> {
    let mut content = Content::default();
    let mut after = Seq::ZERO;
    loop {
        let page = store.read(id, after, PIECE_BYTES).await?;
        for record in page.iter().filter(|it| it.seq <= upto) {
            content.add(record);
        }
        match page.last() {
            Some(last) if last.seq < upto => after = last.seq,
            _ => return Ok(content),
        }
    }
}

/// Deletes a thread that still ends with a record. Conflicts if it does not.
async fn delete_at(
    store: &dyn ThreadStore,
    id: ThreadId,
    head: Seq,
    now: Timestamp,
) -> Result<(), AppendError> {
    let mark = Record {
        seq: head.next(),
        at: now,
        body: Event::Deleted { principal: None }.into(),
    };
    let deleted = store.append(id, head, &[mark], Class::Power).await?;
    store.forget(id, deleted).await
}

/// Returns the id under which a thread is copied.
pub(crate) fn staged_id(thread: ThreadId) -> ThreadId {
    let hash = Sha256::new()
        .chain_update("raddle transfer")
        .chain_update(thread.as_uuid().as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
}
