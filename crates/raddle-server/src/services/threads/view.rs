//! Threads and their turns in responses.

use std::collections::VecDeque;

use raddle_agent::{AgentError, PeekResult, Threads};
use raddle_core::ports::{ItemEntry, Page, PageCursor, PageQuery, TurnEntry};
use raddle_core::{
    ItemBody, OpenTurn, Seq, Thread, ThreadId, TurnId, item_view, open_item_view, settings_view,
    turn_view, view,
};
use raddle_protocol as wire;
use wire::TurnItemsView;

use super::cursors;
use super::items::{ITEMS_BYTES_MAX, show, weight};

/// Approximate size of a turn in bytes, without its items.
const TURN_BYTES: usize = 250;

/// Page sizes for turns, and for items of a turn.
const TURNS: usize = 25;
const ITEMS: usize = 100;

/// Numbers of items at the ends of a turn to search for its first and last messages.
const FIRST: usize = 8;
const LAST: usize = 64;

/// Returns the common part of the responses to `thread/start`, `thread/resume` and `thread/fork`.
///
/// `sources`: the instruction files of its workspace.
pub(crate) fn head(thread: &Thread, sources: Vec<String>) -> wire::ThreadStartResponse {
    let settings = settings_view(thread.settings());
    wire::ThreadStartResponse {
        approval_policy: settings.approval_policy,
        approvals_reviewer: settings.approvals_reviewer,
        cwd: settings.cwd,
        model: settings.model,
        model_provider: settings.model_provider,
        sandbox: settings.sandbox_policy,
        thread: view(thread),
        active_permission_profile: settings.active_permission_profile,
        disabled_plugin_ids: settings.disabled_plugin_ids,
        instruction_sources: sources,
        multi_agent_mode: settings.multi_agent_mode,
        reasoning_effort: settings.effort,
        runtime_workspace_roots: thread.settings().roots.clone(),
        service_tier: settings.service_tier,
    }
}

/// How to show open items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenItemText {
    /// With their present text: the client receives no further deltas.
    WithText,
    /// Without text: the client receives all of it as deltas, after the response.
    WithoutText,
}

/// Returns the newest turns of a thread as of the given state, with their items and oldest first:
/// as many as fit into a response.
pub(crate) async fn turns(
    threads: &Threads,
    peek: &PeekResult,
    open: OpenItemText,
) -> Result<Vec<wire::Turn>, AgentError> {
    let Some(id) = peek.thread.id() else {
        return Ok(Vec::new());
    };
    let mut reader = TurnReader::new(threads, id, peek.thread.head());
    reader.peek = Some(peek);
    reader.open = open;
    reader.items_of_all = Some(ItemReader::newest_first(None));
    reader.newest(None).await
}

/// Returns the newest turns that began before a record, like [`turns`]. None of them runs.
pub(crate) async fn turns_before(
    threads: &Threads,
    id: ThreadId,
    before: Seq,
) -> Result<Vec<wire::Turn>, AgentError> {
    let cursor = PageCursor {
        seq: before,
        included: false,
    };
    let reader = TurnReader::new(threads, id, before);
    reader.newest(Some(cursor.to_string())).await
}

/// Returns a page of a thread's turns. It ends early where their items are long.
pub(crate) async fn turns_page(
    threads: &Threads,
    id: ThreadId,
    mut query: PageQuery,
    items: &TurnItemsView,
) -> Result<wire::TurnsPage, AgentError> {
    let position = query.cursor.map(|it| cursors::position(id, &it));
    query.cursor = position.transpose()?;
    let page = threads.turns(id, query).await?;
    // The page does not say whether a turn without an end is still running.
    let is_open = page.entries.iter().any(|turn| turn.ended.is_none());
    let peek = match is_open {
        true => Some(threads.peek(id).await?),
        false => None,
    };
    let last_seq = peek.as_ref().map(|peek| peek.thread.head());
    let mut reader = TurnReader::new(threads, id, last_seq.unwrap_or(Seq(u64::MAX)));
    reader.peek = peek.as_ref();
    let page = reader.fill(page, items).await?;
    let cursor = |position: Option<String>| position.map(|it| cursors::cursor(id, &it));
    Ok(wire::TurnsPage {
        data: page.data,
        backwards_cursor: cursor(page.backwards_cursor),
        next_cursor: cursor(page.next_cursor),
    })
}

/// Reads turns for one response.
struct TurnReader<'a> {
    threads: &'a Threads,
    id: ThreadId,
    /// The state of the thread that is shown.
    peek: Option<&'a PeekResult>,
    /// Later records are not shown.
    last_seq: Seq,
    open: OpenItemText,
    /// A reader over the items of all turns, if the turns are read in sequence from the newest on.
    items_of_all: Option<ItemReader>,
    /// Remaining bytes for items. The first item fits in any case.
    bytes_left: usize,
    has_items: bool,
    /// Whether something did not fit.
    is_full: bool,
}

impl<'a> TurnReader<'a> {
    fn new(threads: &'a Threads, id: ThreadId, last_seq: Seq) -> Self {
        Self {
            threads,
            id,
            peek: None,
            last_seq,
            open: OpenItemText::WithText,
            items_of_all: None,
            bytes_left: ITEMS_BYTES_MAX,
            has_items: false,
            is_full: false,
        }
    }

    /// Returns the newest turns from a position on, oldest first: as many as fit into a response.
    async fn newest(mut self, cursor: Option<String>) -> Result<Vec<wire::Turn>, AgentError> {
        let mut shown_turns = Vec::new();
        let mut query = PageQuery {
            limit: TURNS,
            newest_first: true,
            cursor,
        };
        loop {
            let page = self.page(query.clone(), &TurnItemsView::Full).await?;
            shown_turns.extend(page.data);
            query.cursor = page.next_cursor;
            if query.cursor.is_none() || self.is_full {
                break;
            }
        }
        shown_turns.reverse();
        Ok(shown_turns)
    }

    async fn page(
        &mut self,
        query: PageQuery,
        items: &TurnItemsView,
    ) -> Result<wire::TurnsPage, AgentError> {
        let page = self.threads.turns(self.id, query).await?;
        self.fill(page, items).await
    }

    /// Adds the items to the turns, until the response is full.
    async fn fill(
        &mut self,
        page: Page<TurnEntry>,
        items: &TurnItemsView,
    ) -> Result<wire::TurnsPage, AgentError> {
        let mut filled = wire::TurnsPage {
            data: Vec::new(),
            backwards_cursor: page.back,
            next_cursor: page.next,
        };
        let last_seq = self.last_seq;
        let mut entries = page.entries.iter().filter(|it| it.from <= last_seq);
        let mut last = None;
        while let Some(entry) = entries.next() {
            let turn = self.turn(entry, items).await?;
            if !self.is_full || last.is_none() {
                filled.data.push(turn);
                last = Some(entry.from);
            }
            if self.is_full {
                let last_included =
                    last.filter(|seq| *seq != entry.from || entries.next().is_some());
                if let Some(seq) = last_included {
                    let included = false;
                    filled.next_cursor = Some(PageCursor { seq, included }.to_string());
                }
                break;
            }
        }
        Ok(filled)
    }

    /// Returns a turn with its items, or with as many of its last items as still fit.
    async fn turn(
        &mut self,
        entry: &TurnEntry,
        items: &TurnItemsView,
    ) -> Result<wire::Turn, AgentError> {
        let open = self.peek.and_then(|peek| peek.thread.turn());
        let open = open.filter(|open| open.id == entry.turn);
        let mut turn = match open {
            // It may have ended since.
            Some(_) => turn_view(&TurnEntry {
                ended: None,
                ..entry.clone()
            }),
            None => turn_view(entry),
        };
        let is_owned = self.peek.is_none_or(PeekResult::is_owned);
        if turn.status == wire::TurnStatus::InProgress && !is_owned {
            turn.status = wire::TurnStatus::Interrupted;
        }
        turn.items_view = items.clone();
        match items {
            TurnItemsView::Full => {
                self.bytes_left = self.bytes_left.saturating_sub(TURN_BYTES);
                let is_complete = self.items(&entry.turn, &mut turn.items).await?;
                if !is_complete {
                    self.is_full = true;
                    turn.items_view = TurnItemsView::Summary;
                }
                if let Some(open) = open.filter(|_| is_owned) {
                    self.open_items(open, &mut turn.items);
                }
            }
            TurnItemsView::Summary => {
                turn.items = self.ends(&entry.turn).await?;
                let bytes = turn.items.iter().map(weight).sum();
                self.is_full = bytes > self.bytes_left && self.has_items;
                self.has_items = true;
                self.bytes_left = self.bytes_left.saturating_sub(bytes);
            }
            TurnItemsView::NotLoaded | TurnItemsView::Unrecognized(_) => {
                turn.items_view = TurnItemsView::NotLoaded;
            }
        }
        Ok(turn)
    }

    /// Adds the items of a turn; returns false if only the last ones fit.
    async fn items(
        &mut self,
        turn: &TurnId,
        items: &mut Vec<wire::ThreadItem>,
    ) -> Result<bool, AgentError> {
        let mut is_complete = true;
        let mut reader = match self.items_of_all.take() {
            Some(reader) => reader,
            None => ItemReader::newest_first(Some(turn.clone())),
        };
        while let Some(entry) = self.next_of(turn, &mut reader).await? {
            let item = show(self.threads, self.id, &entry.item).await;
            let bytes = weight(&item);
            if bytes > self.bytes_left && self.has_items {
                is_complete = false;
                break;
            }
            self.has_items = true;
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            items.push(item);
        }
        if reader.turn.is_none() {
            self.items_of_all = Some(reader);
        }
        items.reverse();
        Ok(is_complete)
    }

    /// Returns the next item, if it belongs to that turn.
    async fn next_of(
        &self,
        turn: &TurnId,
        reader: &mut ItemReader,
    ) -> Result<Option<ItemEntry>, AgentError> {
        while reader.buffered.is_empty() && !reader.is_exhausted {
            let cursor = reader.cursor.take();
            let page = self.items_page(reader.turn.clone(), cursor, true, ITEMS);
            let page = page.await?;
            reader.buffered = page.entries.into();
            reader.is_exhausted = page.next.is_none();
            reader.cursor = page.next;
        }
        Ok(reader.buffered.pop_front_if(|entry| entry.turn == *turn))
    }

    /// Adds the open items of a turn.
    fn open_items(&self, turn: &OpenTurn, items: &mut Vec<wire::ThreadItem>) {
        let visible = turn.items.iter().filter(|open| !open.item.is_hidden());
        items.extend(visible.map(|open| match self.open {
            OpenItemText::WithText => item_view(&open.current_item()),
            OpenItemText::WithoutText => open_item_view(open),
        }));
    }

    /// Returns the first message of the user, and the last of the agent.
    async fn ends(&self, turn: &TurnId) -> Result<Vec<wire::ThreadItem>, AgentError> {
        let items =
            |cursor, newest_first| self.items_page(Some(turn.clone()), cursor, newest_first, FIRST);
        let page = items(None, false).await?;
        let mut entries = page.entries.into_iter();
        let first = entries.find(|it| matches!(it.item.body, ItemBody::UserMessage(_)));
        let is_answer = |it: &ItemEntry| matches!(it.item.body, ItemBody::AgentMessage(_));
        let mut last = None;
        let mut cursor = None;
        let mut examined = 0;
        while last.is_none() && examined < LAST {
            let page = items(cursor, true).await?;
            examined += page.entries.len();
            last = page.entries.into_iter().find(is_answer);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut messages = Vec::new();
        for it in first.iter().chain(&last) {
            messages.push(show(self.threads, self.id, &it.item).await);
        }
        Ok(messages)
    }

    async fn items_page(
        &self,
        turn: Option<TurnId>,
        cursor: Option<String>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Page<ItemEntry>, AgentError> {
        let query = PageQuery {
            cursor,
            limit,
            newest_first,
        };
        let mut page = self.threads.items(self.id, turn, query).await?;
        page.entries.retain(|it| it.seq <= self.last_seq);
        Ok(page)
    }
}

/// Items from the newest on, read page by page.
struct ItemReader {
    /// The turn of the items; none for all turns.
    turn: Option<TurnId>,
    buffered: VecDeque<ItemEntry>,
    cursor: Option<String>,
    /// Whether no more can be read.
    is_exhausted: bool,
}

impl ItemReader {
    fn newest_first(turn: Option<TurnId>) -> Self {
        Self {
            turn,
            buffered: VecDeque::new(),
            cursor: None,
            is_exhausted: false,
        }
    }
}
