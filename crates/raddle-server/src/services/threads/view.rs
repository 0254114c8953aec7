//! Threads and their turns as answers show them.

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

/// About how many bytes a turn has beside its items.
const TURN_BYTES: usize = 250;

/// How many turns, and items of a turn, are read at a time.
const TURNS: usize = 25;
const ITEMS: usize = 100;

/// How many items at the ends of a turn are looked at for its first and last messages.
const FIRST: usize = 8;
const LAST: usize = 64;

/// What the answers to `thread/start`, `thread/resume` and `thread/fork` have in common.
///
/// `sources`: the files of its workspace that say how they want to be worked on.
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

/// How items are shown that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenItemText {
    /// With the text they have: nothing more is told to whoever asks.
    WithText,
    /// Without text: all of it is told to whoever asks, after the answer.
    WithoutText,
}

/// The newest turns of a thread as it was when it was looked at, with their items and oldest first: as many
/// as fit into an answer.
pub(crate) async fn turns(
    threads: &Threads,
    peek: &PeekResult,
    open: OpenItemText,
) -> Result<Vec<wire::Turn>, AgentError> {
    let mut shown = Vec::new();
    let Some(id) = peek.thread.id() else {
        return Ok(shown);
    };
    let mut look = TurnReader::new(threads, id, peek.thread.head());
    look.peek = Some(peek);
    look.open = open;
    look.along = Some(ItemReader::newest_first(None));
    let mut query = PageQuery {
        limit: TURNS,
        newest_first: true,
        cursor: None,
    };
    loop {
        let page = look.page(query.clone(), &TurnItemsView::Full).await?;
        shown.extend(page.data);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() || look.is_full {
            break;
        }
    }
    shown.reverse();
    Ok(shown)
}

/// A page of a thread's turns. It ends early where their items are long.
pub(crate) async fn turns_page(
    threads: &Threads,
    id: ThreadId,
    mut query: PageQuery,
    items: &TurnItemsView,
) -> Result<wire::TurnsPage, AgentError> {
    let place = query.cursor.map(|it| cursors::place(id, &it));
    query.cursor = place.transpose()?;
    let page = threads.turns(id, query).await?;
    // Whether a turn that has not ended goes on is not written on the page.
    let is_open = page.entries.iter().any(|turn| turn.ended.is_none());
    let peek = match is_open {
        true => Some(threads.peek(id).await?),
        false => None,
    };
    let upto = peek.as_ref().map(|peek| peek.thread.head());
    let mut look = TurnReader::new(threads, id, upto.unwrap_or(Seq(u64::MAX)));
    look.peek = peek.as_ref();
    let page = look.fill(page, items).await?;
    let cursor = |place: Option<String>| place.map(|it| cursors::cursor(id, &it));
    Ok(wire::TurnsPage {
        data: page.data,
        backwards_cursor: cursor(page.backwards_cursor),
        next_cursor: cursor(page.next_cursor),
    })
}

/// A walk over turns for one answer.
struct TurnReader<'a> {
    threads: &'a Threads,
    id: ThreadId,
    /// The thread as it is shown.
    peek: Option<&'a PeekResult>,
    /// What came later is not shown.
    upto: Seq,
    open: OpenItemText,
    /// The items of all turns, where these are looked at one after the other from the newest on.
    along: Option<ItemReader>,
    /// How many bytes of items the answer still takes; all of them before the first.
    bytes_left: usize,
    is_begun: bool,
    /// Whether something did not fit.
    is_full: bool,
}

impl<'a> TurnReader<'a> {
    fn new(threads: &'a Threads, id: ThreadId, upto: Seq) -> Self {
        Self {
            threads,
            id,
            peek: None,
            upto,
            open: OpenItemText::WithText,
            along: None,
            bytes_left: ITEMS_BYTES_MAX,
            is_begun: false,
            is_full: false,
        }
    }

    async fn page(
        &mut self,
        query: PageQuery,
        items: &TurnItemsView,
    ) -> Result<wire::TurnsPage, AgentError> {
        let page = self.threads.turns(self.id, query).await?;
        self.fill(page, items).await
    }

    /// Gives turns their items, until the answer is full.
    async fn fill(
        &mut self,
        page: Page<TurnEntry>,
        items: &TurnItemsView,
    ) -> Result<wire::TurnsPage, AgentError> {
        let mut shown = wire::TurnsPage {
            data: Vec::new(),
            backwards_cursor: page.back,
            next_cursor: page.next,
        };
        let upto = self.upto;
        let mut entries = page.entries.iter().filter(|it| it.from <= upto);
        let mut last = None;
        while let Some(entry) = entries.next() {
            let turn = self.turn(entry, items).await?;
            if !self.is_full || last.is_none() {
                shown.data.push(turn);
                last = Some(entry.from);
            }
            if self.is_full {
                let cut = last.filter(|seq| *seq != entry.from || entries.next().is_some());
                if let Some(seq) = cut {
                    let included = false;
                    shown.next_cursor = Some(PageCursor { seq, included }.to_string());
                }
                break;
            }
        }
        Ok(shown)
    }

    /// A turn with its items, or with those of its end that still fit.
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
        let is_owned = self.peek.is_none_or(|peek| peek.owned);
        if turn.status == wire::TurnStatus::InProgress && !is_owned {
            turn.status = wire::TurnStatus::Interrupted;
        }
        turn.items_view = items.clone();
        match items {
            TurnItemsView::Full => {
                self.bytes_left = self.bytes_left.saturating_sub(TURN_BYTES);
                let whole = self.items(&entry.turn, &mut turn.items).await?;
                if !whole {
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
                self.is_full = bytes > self.bytes_left && self.is_begun;
                self.is_begun = true;
                self.bytes_left = self.bytes_left.saturating_sub(bytes);
            }
            TurnItemsView::NotLoaded | TurnItemsView::Unrecognized(_) => {
                turn.items_view = TurnItemsView::NotLoaded;
            }
        }
        Ok(turn)
    }

    /// The items of a turn; those of its end if not all fit, and then false.
    async fn items(
        &mut self,
        turn: &TurnId,
        items: &mut Vec<wire::ThreadItem>,
    ) -> Result<bool, AgentError> {
        let mut whole = true;
        let mut from = match self.along.take() {
            Some(along) => along,
            None => ItemReader::newest_first(Some(turn.clone())),
        };
        while let Some(entry) = self.next_of(turn, &mut from).await? {
            let item = show(self.threads, self.id, &entry.item).await;
            let bytes = weight(&item);
            if bytes > self.bytes_left && self.is_begun {
                whole = false;
                break;
            }
            self.is_begun = true;
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            items.push(item);
        }
        if from.turn.is_none() {
            self.along = Some(from);
        }
        items.reverse();
        Ok(whole)
    }

    /// The next item, if it is of that turn.
    async fn next_of(
        &self,
        turn: &TurnId,
        from: &mut ItemReader,
    ) -> Result<Option<ItemEntry>, AgentError> {
        while from.read.is_empty() && !from.is_over {
            let cursor = from.cursor.take();
            let page = self.items_page(from.turn.clone(), cursor, true, ITEMS);
            let page = page.await?;
            from.read = page.entries.into();
            from.is_over = page.next.is_none();
            from.cursor = page.next;
        }
        Ok(from.read.pop_front_if(|entry| entry.turn == *turn))
    }

    /// Adds what of a turn is open.
    fn open_items(&self, turn: &OpenTurn, items: &mut Vec<wire::ThreadItem>) {
        let told = turn.items.iter().filter(|open| !open.item.is_hidden());
        items.extend(told.map(|open| match self.open {
            OpenItemText::WithText => item_view(&open.so_far()),
            OpenItemText::WithoutText => open_item_view(open),
        }));
    }

    /// The first message of the user, and the last of the agent.
    async fn ends(&self, turn: &TurnId) -> Result<Vec<wire::ThreadItem>, AgentError> {
        let items =
            |cursor, newest_first| self.items_page(Some(turn.clone()), cursor, newest_first, FIRST);
        let page = items(None, false).await?;
        let mut entries = page.entries.into_iter();
        let first = entries.find(|it| matches!(it.item.body, ItemBody::UserMessage(_)));
        let is_answer = |it: &ItemEntry| matches!(it.item.body, ItemBody::AgentMessage(_));
        let mut last = None;
        let mut cursor = None;
        let mut seen = 0;
        while last.is_none() && seen < LAST {
            let page = items(cursor, true).await?;
            seen += page.entries.len();
            last = page.entries.into_iter().find(is_answer);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut both = Vec::new();
        for it in first.iter().chain(&last) {
            both.push(show(self.threads, self.id, &it.item).await);
        }
        Ok(both)
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
        page.entries.retain(|it| it.seq <= self.upto);
        Ok(page)
    }
}

/// Items from the newest on, as far as they are read.
struct ItemReader {
    /// Of this turn, or of all.
    turn: Option<TurnId>,
    read: VecDeque<ItemEntry>,
    cursor: Option<String>,
    /// Whether no more can be read.
    is_over: bool,
}

impl ItemReader {
    fn newest_first(turn: Option<TurnId>) -> Self {
        Self {
            turn,
            read: VecDeque::new(),
            cursor: None,
            is_over: false,
        }
    }
}
