//! Looking at threads without taking them: lists, pages, and a thread as it is.

use std::sync::Arc;

use raddle_core::ports::{
    ItemEntry, ListQuery, Page, PageQuery, Pages, ReadError, Summary, TurnEntry,
};
use raddle_core::{Refusal, Seq, Status, Thread, ThreadId, TurnId};

use crate::open::open;
use crate::threads::Retention;
use crate::{AgentError, Handle, Threads};

/// A thread as it was when someone looked.
#[derive(Debug)]
pub struct PeekResult {
    /// The thread.
    pub thread: Box<Thread>,
    /// Whether it is live here.
    pub live: bool,
    /// Whether a process that is alive has it, so that a turn that has not ended goes on.
    pub owned: bool,
}

/// A thread of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedThread {
    /// What is stored of it.
    pub summary: Summary,
    /// What it is doing, if it is live here.
    pub status: Option<Status>,
}

impl Threads {
    /// The thread as it is, without taking it or keeping it open.
    pub async fn peek(&self, id: ThreadId) -> Result<PeekResult, AgentError> {
        let live = self.shared.live().get(&id).cloned();
        if let Some(handle) = live
            && let Ok(thread) = handle.inspect(|thread| Box::new(thread.clone())).await
        {
            return Ok(PeekResult {
                thread,
                live: true,
                owned: true,
            });
        }
        let (thread, _) = open(&*self.shared.journal, id).await?;
        // A copy that has not its own first record yet is nobody's thread.
        if thread.id() != Some(id) {
            return Err(ReadError::NotFound.into());
        }
        if thread.is_deleted() {
            return Err(Refusal::Deleted.into());
        }
        let owned = match thread.owner() {
            // It is not live here, so what we had we no longer have.
            Some(node) if node != self.shared.node => self.shared.liveness.is_alive(node).await?,
            Some(_) | None => false,
        };
        Ok(PeekResult {
            thread: Box::new(thread),
            live: false,
            owned,
        })
    }

    /// The name of this process among those that share the journal.
    pub fn node(&self) -> &str {
        &self.shared.node
    }

    /// The number of a thread's newest record.
    pub async fn head(&self, id: ThreadId) -> Result<Seq, AgentError> {
        Ok(self.shared.journal_of(id).head(id).await?)
    }

    /// The threads that are live, in the order of their ids. One that is being left or deleted is not.
    pub fn loaded(&self) -> Vec<ThreadId> {
        let live = self.shared.live();
        let staying = live.iter().filter(|(_, it)| !it.sender.is_closed());
        let mut loaded: Vec<ThreadId> = staying.map(|(id, _)| *id).collect();
        loaded.sort();
        loaded
    }

    /// A page of threads.
    pub async fn list(&self, query: ListQuery) -> Result<Page<ListedThread>, AgentError> {
        let page = self.shared.pages.list(query).await?;
        Ok(self.with_status(page))
    }

    /// A page of threads that hold a text.
    pub async fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> Result<Page<ListedThread>, AgentError> {
        let page = self.shared.pages.search(text, query).await?;
        Ok(self.with_status(page))
    }

    /// A page of a thread's turns that count.
    pub async fn turns(
        &self,
        id: ThreadId,
        query: PageQuery,
    ) -> Result<Page<TurnEntry>, AgentError> {
        Ok(self.pages_of(id).turns(id, query).await?)
    }

    /// A page of a thread's completed items that count and are told as items; of one turn, if it is named.
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
        let kept = self.shared.live().get(&id).map(|handle| handle.retention);
        match kept {
            Some(Retention::Ephemeral) => self.shared.memory_pages.clone(),
            Some(Retention::Durable) | None => self.shared.pages.clone(),
        }
    }

    /// Adds what those are doing that are live. No task is asked: one that is busy would hold up a list of others.
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
