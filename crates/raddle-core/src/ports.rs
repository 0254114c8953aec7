//! What the rules need from outside: small traits that every implementation honours in full.

mod model;
mod pages;
mod rulebook;
mod summary;
mod tools;
mod webhook;

pub use model::{FreeformSpec, Model, ModelAnswer, ModelEvent, Prompt, ToolSpec};
pub use pages::{ItemEntry, ListOrder, ListQuery, Page, PageCursor, PageQuery, TurnEntry};
pub use rulebook::{AmendError, Rulebook};
pub(crate) use summary::preview;
pub use summary::{Origin, Summary};
pub use tools::{
    Authorization, BackgroundTerminal, ReportSink, ToolIntent, ToolJob, ToolResult, Tools,
};
pub use webhook::{Webhook, WebhookDecision, WebhookRequest};

use std::future::Future;
use std::pin::Pin;

use crate::{Base, Blob, Class, Record, RecordBody, Seq, ThreadId, TurnId};

/// A future that owns nothing and can be sent.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where records are kept.
///
/// The fence is the head: an append names the head it follows and moves it in the same step, so that
/// of two writers only one succeeds, whatever either believes.
pub trait Journal: Send + Sync {
    /// Appends after `after`; a second writer gets [`AppendError::Conflict`]. `class` says what must be
    /// survived once this has succeeded: the process's death or the power's. Answers with the new head.
    ///
    /// A store on a disk holds room back for appends of which [`ends_for_lack_of_room`] is true.
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// The newest record's number, as the fence sees it; [`Seq::ZERO`] before the first.
    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>>;

    /// Records after a number, in order, at most about `bytes_max` of them but at least one if there is one.
    /// Deltas of items that are settled may be gone.
    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>>;

    /// The newest base whose head is not above `at`; the newest of all if nothing is said.
    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>>;

    /// Keeps a base. It can be dropped at any time, so nothing waits for it to be durable.
    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Begins the thread `to` with the records of `from` up to and including `at`, under the same numbers,
    /// at the price of opening `from`. Survives the power's loss. Answers with the new thread's head: the
    /// newest record that it has. Deltas of items that `from` has settled may be gone, those of items that
    /// are open there are in both threads. From then on neither thread notices what becomes of the other.
    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>>;

    /// Removes a thread and everything that only it uses. Forks of it stay whole.
    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>>;

    /// The same if this is still its newest record, and says that it was deleted. Whoever was faster may have begun
    /// another thread under the same id by now, which stays.
    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>>;
}

/// Lists and pages, made from the records and beside them. All of it can be dropped and made again.
pub trait Pages: Send + Sync {
    /// A page of threads.
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>>;

    /// A page of a thread's turns that count, oldest or newest first.
    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>>;

    /// A page of a thread's completed items that count, oldest or newest first; of one turn, if it is named.
    /// It ends early where the items on it are long, with at least one.
    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>>;

    /// A page of threads that hold a text. It may lag behind the records. Whoever searches waits only so
    /// long: a page may end before it is full, and its cursor goes on from there.
    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>>;
}

/// Bytes beside the journal, named by their hash.
pub trait Blobs: Send + Sync {
    /// Keeps bytes; they are durable when this has succeeded. Only then may a record name them, and an
    /// append that names what is not there is refused. What no record names may be forgotten after an
    /// hour, and what some did goes with the last of them.
    fn put(&self, bytes: Vec<u8>, media: String) -> BoxFuture<'_, Result<Blob, AppendError>>;

    /// The bytes, checked against their name.
    fn get(&self, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>>;
}

/// Whether records end a turn because the journal is full.
pub fn ends_for_lack_of_space(records: &[Record]) -> bool {
    records.iter().any(|record| match &record.body {
        RecordBody::Event(event) => event.ends_for_lack_of_space(),
        RecordBody::Delta(_) => false,
    })
}

/// Why an append did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The head is not where the writer thinks: someone else writes now.
    #[error("another writer has the thread")]
    Conflict,
    /// It did not happen, and may if tried again.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// It did not happen: there is no room.
    #[error("the journal is full: {0}")]
    Full(String),
    /// It did not happen, and the thread can only be read.
    #[error("the journal cannot be written: {0}")]
    ReadOnly(String),
    /// It did not happen: it names bytes that are not there.
    #[error("a record names the blob {0}, which is not there; put it first")]
    NoBlob(String),
    /// It did not happen: a newer version has the journal.
    #[error("the journal was written by a newer version ({0}); upgrade to write to it")]
    Newer(String),
    /// Nobody knows. The head tells.
    #[error("it is not known whether the journal took the records: {0}")]
    Unknown(String),
}

/// Why a fork did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// There is a thread of that name.
    #[error("there is a thread with the new thread's id; mint another")]
    Taken,
    /// There is nothing so far up.
    #[error("the thread ends with record {head}; fork it there or before")]
    Beyond {
        /// Where it ends.
        head: Seq,
    },
    /// What was to be forked cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The new thread could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such thread.
    #[error("no such thread")]
    NotFound,
    /// What is stored is not what was written. The thread is left as it is.
    #[error("the journal of this thread is damaged at record {at}: {what}")]
    Corrupt {
        /// The first record that cannot be trusted.
        at: Seq,
        /// What is wrong with it.
        what: String,
    },
    /// It may work if tried again.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// The cursor is none that a page gave.
    #[error("the cursor is none that a page gave")]
    BadCursor,
    /// It was written by a newer version.
    #[error("the journal was written by a newer version ({0}); upgrade to read it")]
    Newer(String),
}
