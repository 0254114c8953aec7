//! Reads without ownership: lists, pages, and the current state of a thread.

use std::sync::Arc;

use raddle_core::ports::{
    ItemEntry, ListQuery, Page, PageQuery, Pages, ReadError, Summary, TurnEntry,
};
use raddle_core::{Refusal, Seq, Status, Thread, ThreadId, TurnId};

use crate::open::open;
use crate::threads::Retention;
use crate::{AgentError, Handle, Threads};

/// State of a thread at the time of a read.
#[derive(Debug)]
pub struct PeekResult {
    /// The thread, replayed up to its newest record.
    pub thread: Box<Thread>,
    /// The process that owns it.
    pub ownership: Ownership,
}

/// The process that owns a thread, as this process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The thread is loaded in this process.
    Loaded,
    /// Another live process owns it.
    OwnedElsewhere,
    /// No live process owns it.
    Unowned,
}

impl PeekResult {
    /// A thread that is loaded in this process.
    pub fn loaded(thread: Box<Thread>) -> Self {
        Self {
            thread,
            ownership: Ownership::Loaded,
        }
    }

    /// Whether the thread is loaded in this process.
    pub fn is_loaded(&self) -> bool {
        self.ownership == Ownership::Loaded
    }

    /// Whether a live process owns the thread, so that its running turn continues.
    pub fn is_owned(&self) -> bool {
        self.ownership != Ownership::Unowned
    }
}

/// An entry of a list of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedThread {
    /// Summary as the journal stores it.
    pub summary: Summary,
    /// Current status, if the thread is loaded here.
    pub status: Option<Status>,
}

impl Threads {
    /// Returns the current state of a thread, without owning or loading it.
    pub async fn peek(&self, id: ThreadId) -> Result<PeekResult, AgentError> {
        let live = self.shared.live().get(&id).cloned();
        if let Some(handle) = live
            && let Ok(thread) = handle.inspect(|thread| Box::new(thread.clone())).await
        {
            return Ok(PeekResult::loaded(thread));
        }
        let (thread, _) = open(&*self.shared.journal, id).await?;
        // A fork that was interrupted before its first own record does not exist yet.
        if thread.id() != Some(id) {
            return Err(ReadError::NotFound.into());
        }
        if thread.is_deleted() {
            return Err(Refusal::Deleted.into());
        }
        let is_owned = match thread.owner() {
            // This process has unloaded it, so it no longer owns it.
            Some(node) if node != self.shared.node => self.shared.liveness.is_alive(node).await?,
            Some(_) | None => false,
        };
        Ok(PeekResult {
            thread: Box::new(thread),
            ownership: match is_owned {
                true => Ownership::OwnedElsewhere,
                false => Ownership::Unowned,
            },
        })
    }

    /// Name of this process among those that share the journal.
    pub fn node(&self) -> &str {
        &self.shared.node
    }

    /// Sequence number of a thread's newest record.
    pub async fn head(&self, id: ThreadId) -> Result<Seq, AgentError> {
        Ok(self.shared.journal_of(id).head(id).await?)
    }

    /// Ids of the loaded threads, sorted. Threads that are being unloaded or deleted are excluded.
    pub fn loaded(&self) -> Vec<ThreadId> {
        let live = self.shared.live();
        let open_handles = live.iter().filter(|(_, it)| !it.sender.is_closed());
        let mut loaded: Vec<ThreadId> = open_handles.map(|(id, _)| *id).collect();
        loaded.sort();
        loaded
    }

    /// Returns a page of threads.
    pub async fn list(&self, query: ListQuery) -> Result<Page<ListedThread>, AgentError> {
        let page = self.shared.pages.list(query).await?;
        Ok(self.with_status(page))
    }

    /// Returns a page of threads that contain a text.
    pub async fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> Result<Page<ListedThread>, AgentError> {
        let page = self.shared.pages.search(text, query).await?;
        Ok(self.with_status(page))
    }

    /// Returns a page of a thread's turns, without reverted ones.
    pub async fn turns(
        &self,
        id: ThreadId,
        query: PageQuery,
    ) -> Result<Page<TurnEntry>, AgentError> {
        Ok(self.pages_of(id).turns(id, query).await?)
    }

    /// Returns a page of a thread's completed visible items, optionally of one turn, without
    /// reverted ones.
    pub async fn items(
        &self,
        id: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> Result<Page<ItemEntry>, AgentError> {
        let mut page = self.pages_of(id).items(id, turn, query).await?;
        page.entries.retain(|it| !it.item.is_hidden());
        Ok(page)
    }

    fn pages_of(&self, id: ThreadId) -> Arc<dyn Pages> {
        let retention = self.shared.live().get(&id).map(|handle| handle.retention);
        match retention {
            Some(Retention::Ephemeral) => self.shared.memory_pages.clone(),
            Some(Retention::Durable) | None => self.shared.pages.clone(),
        }
    }

    /// Adds the status of loaded threads. Reads snapshots only: a busy task must not delay the
    /// list.
    fn with_status(&self, page: Page<Summary>) -> Page<ListedThread> {
        let live = self.shared.live();
        let listed = page.entries.into_iter().map(|summary| ListedThread {
            status: live.get(&summary.thread).and_then(Handle::status),
            summary,
        });
        Page {
            entries: listed.collect(),
            next: page.next,
            back: page.back,
        }
    }
}
