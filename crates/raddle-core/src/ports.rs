//! The outside world as the rules see it: small traits that every implementation honours in full.

mod checkpoints;
mod durability;
mod hooks;
mod mcp;
mod model;
mod pages;
mod plugin_acts;
mod plugins;
mod review_diffs;
mod rulebook;
mod skills;
mod store_timeouts;
mod summary;
mod tools;
mod webhook;
mod workspace_copies;

pub use checkpoints::{
    ChangeAuthor, Checkpoint, CheckpointDiff, CheckpointError, CheckpointGap, CheckpointRange,
    CheckpointState, Checkpoints, ConflictReason, DiffHunk, FileConflict, FileDiff,
    FileDiffContent, FileDiffKind, FileRestore, NoCheckpoints, RestoreEffect, RestoreFiles,
    RestoredFile,
};
pub use durability::Durability;
pub use hooks::{
    HookCall, HookEntry, HookEvent, HookLayer, HookObserver, HookOutcome, HookRuling, HookRun,
    HookRunEnd, HookRunStatus, Hooks, NoHooks,
};
pub use mcp::{
    McpAuth, McpError, McpListener, McpLogin, McpServerSnapshot, McpServerState, McpServers,
    NoMcpServers,
};
pub use model::{FreeformSpec, Model, ModelAnswer, ModelEvent, Prompt, ToolSpec};
pub use pages::{
    ItemEntry, ListOrder, ListQuery, ListScope, Page, PageCursor, PageQuery, TurnEntry,
};
pub use plugin_acts::{ActApprover, MODEL_CALL, NoPluginActs, NotApproved, PluginAct, PluginActs};
pub use plugins::{
    ManifestSummary, NoPlugins, PluginEvent, PluginEventListener, PluginHookSummary, PluginRequest,
    PluginRequestError, PluginSkill, PluginSnapshot, Plugins,
};
pub use review_diffs::{NoReviewDiffs, ReviewDiffs, ReviewedDiff};
pub use rulebook::{AmendError, Rulebook};
pub use skills::{OfferedSkill, SkillOffer, Skills, TrustError, UndecidedFolder};
pub use store_timeouts::StoreTimeouts;
pub(crate) use summary::preview;
pub use summary::{Activity, Origin, Summary, ThreadOwner};
pub use tools::{
    Authorization, BackgroundTerminal, QuestionSink, ReportSink, Requirement, ToolIntent, ToolJob,
    ToolResult, Tools,
};
pub use webhook::{Webhook, WebhookDecision, WebhookError, WebhookRequest};
pub use workspace_copies::{
    ApplyChanges, CopyChanges, CopyError, CopyOverlap, CreatedCopy, FileToApply, ForkedFiles,
    HunkToApply, NewCopy, NoWorkspaceCopies, ThreadFolder, WorkspaceCopies, WorkspaceCopy,
};

use std::future::Future;
use std::pin::Pin;

use crate::{Base, Blob, Class, Record, RecordBody, Seq, ThreadId, TurnId};

/// A boxed future that can be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Storage of records.
///
/// Fencing is by the head. An append names the head it follows and moves it in the same step. So of
/// two writers only one succeeds, even if both believe that they own the thread.
pub trait Journal: Send + Sync {
    /// Appends after `after`; a second writer gets [`AppendError::Conflict`]. `class` names the
    /// failure that the records must survive once this has succeeded: of the process or of power.
    /// Returns the new head. A delta moves the head too, within the epoch of the thread's owner.
    ///
    /// A node writes to threads that it created, took ([`Journal::take`]), or that no node owns. An
    /// append to a thread of another node may get `Conflict` although it names the head: the owner's
    /// deltas may be stored outside the thread, where they could follow that head at any time.
    ///
    /// An error other than [`AppendError::Unknown`] means that nothing was stored and nothing will
    /// be. If the store cannot tell, as after a broken connection, it returns `Unknown`.
    ///
    /// A store on a disk reserves space for appends of which [`ends_for_lack_of_space`] is true.
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// Ends the writes of the node that owned a thread, and returns the head, after which the
    /// caller may append. Called before a thread is opened for writing, and again if there are
    /// records that the caller had not folded; reads use [`Journal::head`].
    ///
    /// `former` is the owner by the records that the caller folded. It is `None` if that owner
    /// released the thread, or is the caller's own node. Each process has a name of its own.
    ///
    /// A store that gathers the deltas of a node outside the thread seals them here, so that no
    /// delta of `former` is stored later. That ends the deltas of all its threads: each next append
    /// of such a thread gets [`AppendError::Conflict`]. If another node than `former` owns the thread
    /// by now, the store returns the head and leaves the thread to that node. Elsewhere this is the
    /// head.
    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>>;

    /// Number of the newest record, as the conditional append sees it; [`Seq::ZERO`] before the
    /// first.
    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>>;

    /// Returns the records after a number, in order: about `bytes_max` bytes, but at least one
    /// record if there is one. Deltas of settled items may be deleted.
    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>>;

    /// Returns the newest base whose head is not above `at`; the newest of all for `None`.
    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>>;

    /// Stores a base. It can be dropped at any time, so it need not be durable.
    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Creates the thread `to` with the records of `from` up to and including `at`, under the same
    /// numbers, at the cost of opening `from`. Survives loss of power. Returns the new thread's
    /// head: its newest record. Deltas of items that `from` has settled may be deleted; those of
    /// open items are in both threads. From then on the two threads are independent.
    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>>;

    /// Removes a thread and everything that only it uses. Forks of it stay whole.
    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Deletes a thread if the record `head`, which marks the deletion, is still its newest.
    /// Another writer may have started a new thread under the same id by now, which stays.
    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Time limits that suit the store: how long it may be silent without being lost.
    fn timeouts(&self) -> StoreTimeouts;

    /// Durability of events, as the store last measured it. A store on a database measures it when it
    /// connects, and with each append without records.
    fn durability(&self) -> Durability;

    /// Removes what the store keeps for this node, as the node ends. Nothing may be appended after
    /// that. A store that cannot do so leaves it to other nodes.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Lists and pages, derived from the records. All of it can be dropped and rebuilt.
pub trait Pages: Send + Sync {
    /// Returns a page of threads that pass the filters. The head of a thread may lag behind the deltas
    /// that another node appends to it.
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>>;

    /// Returns a page of a thread's turns that count, oldest or newest first.
    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>>;

    /// Returns a page of a thread's completed items that count, oldest or newest first; of one
    /// turn, if it is named. It ends early where the items on it are long, with at least one.
    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>>;

    /// Returns a page of threads that contain a text. It may lag behind the records. The search has
    /// a time limit: a page may end before it is full, and its cursor continues there.
    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>>;
}

/// Storage of large data outside the journal, named by its hash.
///
/// A blob belongs to the thread that it was put for, and to the forks of that thread. A store may
/// share the bytes of threads of one tenant, and never those of different tenants: whether a hash
/// is known would tell one tenant what another has.
pub trait Blobs: Send + Sync {
    /// Stores bytes for a thread, which need not exist yet. They are durable once this has
    /// succeeded. Only then may a record of the thread name them: an append that names a missing
    /// blob is rejected. A blob that no record names may be deleted after an hour, any other some
    /// time after the last record that names it.
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>>;

    /// Returns the bytes of a blob of a thread, verified against their hash.
    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>>;
}

/// Whether records end a turn because the journal is full.
pub fn ends_for_lack_of_space(records: &[Record]) -> bool {
    records.iter().any(|record| match &record.body {
        RecordBody::Event(event) => event.ends_for_lack_of_space(),
        RecordBody::Delta(_) => false,
    })
}

/// Reason why an append did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The head is not where the writer expects it: another writer owns the thread now.
    #[error("another writer has the thread")]
    Conflict,
    /// Not appended, for certain; a retry may succeed.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// Not appended: there is no space.
    #[error("the journal is full: {0}")]
    Full(String),
    /// Not appended: the thread can only be read.
    #[error("the journal cannot be written: {0}")]
    ReadOnly(String),
    /// Not appended: a record names a missing blob.
    #[error("a record names the blob {0}, which does not exist; store it first")]
    NoBlob(String),
    /// Not appended: a newer version wrote the journal.
    #[error("the journal was written by a newer version ({0}); upgrade to write to it")]
    Newer(String),
    /// The outcome is unknown: stored, or not, or not yet. [`Journal::head`] settles it.
    #[error("unknown whether the journal stored the records: {0}")]
    Unknown(String),
}

/// Reason why a fork did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// A thread with the new id exists.
    #[error("a thread with the new id exists; mint another")]
    Taken,
    /// The position is beyond the head.
    #[error("the thread ends with record {head}; fork it there or before")]
    Beyond {
        /// Newest record of the thread.
        head: Seq,
    },
    /// The thread to fork cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The new thread could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Reason why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such thread.
    #[error("no such thread")]
    NotFound,
    /// The stored data is not what was written. The thread is left as it is.
    #[error("the journal of this thread is damaged at record {at}: {what}")]
    Corrupt {
        /// First record that cannot be trusted.
        at: Seq,
        /// Description of the damage.
        what: String,
    },
    /// Temporary; a retry may succeed.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// The folder of the journal cannot be used until the operator changes it; a retry does not
    /// help. The text names the path, the cause and the remedy.
    #[error("{0}")]
    Unusable(String),
    /// The cursor is not one that a page returned.
    #[error("invalid cursor: pass the nextCursor of the previous page")]
    BadCursor,
    /// A newer version wrote the journal.
    #[error("the journal was written by a newer version ({0}); upgrade to read it")]
    Newer(String),
}
