//! Finding and reading threads: lists, search, sections, and pages of turns and items.
//! A cursor is opaque, and belongs to the method and the filters that it came from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::*;

/// Params of `thread/list`. A thread must pass every filter; null lets all pass unless noted below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListParams {
    /// Only threads spawned below this one, at any depth. Excludes `parentThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub ancestor_thread_id: Option<ThreadId>,
    /// True lists only archived threads; false or null only the others.
    pub archived: Option<bool>,
    /// Only forks attached to this thread, which ordinary lists leave out.
    /// Excludes `parentThreadId` and `ancestorThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub attached_to_thread_id: Option<ThreadId>,
    /// Where to go on; null begins at the front.
    pub cursor: Option<String>,
    /// Only threads with exactly this working directory, or one of these.
    pub cwd: Option<ThreadListCwdFilter>,
    /// Threads to leave out before the page is cut, at most 100. Repeat them for every page.
    pub excluded_thread_ids: Option<Vec<ThreadId>>,
    /// Most threads on the page. Null means 25; values out of range are brought into 1 to 100.
    pub limit: Option<u32>,
    /// Only threads of these providers. Null or empty means all.
    pub model_providers: Option<Vec<String>>,
    /// Only threads made by these client programs. Null or empty means all.
    pub originators: Option<Vec<String>>,
    /// Only threads that this one spawned itself. Excludes `ancestorThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub parent_thread_id: Option<ThreadId>,
    /// Only threads of this project. On the wire absence means all, null those without a project.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub project_id: Maybe<String>,
    /// Only threads whose title contains this text.
    pub search_term: Option<String>,
    /// Only threads of this section. On the wire absence means all, null those without a section.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub section_id: Maybe<String>,
    /// Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
    /// What to sort by. Null means `created_at`.
    pub sort_key: Option<ThreadSortKey>,
    /// Only threads started by these. Null or empty means `cli` and `vscode`.
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
    /// Answers from the index alone, without checking it against the histories. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub use_state_db_only: bool,
}

/// Result of `thread/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListResponse {
    /// The threads, without turns.
    pub data: Vec<Thread>,
    /// Cursor for listing the other way from the page's first thread; null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
    /// What is unread, by thread id; a thread without such a state is left out.
    /// Null when the server keeps none.
    #[schemars(extend("x-experimental" = true))]
    pub read_states: Option<BTreeMap<String, ThreadReadState>>,
}

/// Params of `thread/loaded/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLoadedListParams {
    /// Where to go on; null begins at the front.
    pub cursor: Option<String>,
    /// Most ids on the page; null means all.
    pub limit: Option<u32>,
}

/// Result of `thread/loaded/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLoadedListResponse {
    /// Ids of the threads in memory.
    pub data: Vec<ThreadId>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/read`, which neither loads the thread nor subscribes to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// Adds all turns with their items. False by default; an error for ephemeral threads.
    #[serde(default, deserialize_with = "null_as_default")]
    pub include_turns: bool,
}

/// Result of `thread/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    /// The thread; its turns only if they were asked for.
    pub thread: Thread,
    /// What is unread in it. Null when not kept.
    #[schemars(extend("x-experimental" = true))]
    pub read_state: Option<ThreadReadState>,
}

/// Params of `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// Where to go on; null begins at the end that `sortDirection` names.
    pub cursor: Option<String>,
    /// How much of each turn's items to include. Null means `summary`.
    pub items_view: Option<TurnItemsView>,
    /// Most turns on the page. Null means 25; values out of range are brought into 1 to 100.
    pub limit: Option<u32>,
    /// Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
}

/// Result of `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListResponse {
    /// The turns, in the order asked for.
    pub data: Vec<Turn>,
    /// Cursor for reading the other way. The page's first turn comes again, with what changed in it since.
    /// Null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/items/list`. Only completed items are listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// Only items of this turn; null means the whole thread.
    pub turn_id: Option<TurnId>,
    /// Where to go on; null begins at the end that `sortDirection` names.
    pub cursor: Option<ThreadItemsListCursor>,
    /// Most items on the page. Null means 25; values out of range are brought into 1 to 100.
    pub limit: Option<u32>,
    /// Null means `asc`, oldest first.
    pub sort_direction: Option<SortDirection>,
}

/// Result of `thread/items/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListResponse {
    /// The items, in the order asked for.
    pub data: Vec<ThreadItemEntry>,
    /// Cursor for reading the other way from the page's first item; null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

/// Params of `threadSection/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListParams {
    /// Where to go on; null begins at the front.
    pub cursor: Option<String>,
    /// Most sections on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `threadSection/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListResponse {
    /// The sections.
    pub data: Vec<ThreadSection>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/search`, which looks for text inside threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchParams {
    /// The text to look for.
    pub search_term: String,
    /// True searches only archived threads; false or null only the others.
    pub archived: Option<bool>,
    /// Where to go on; null begins at the front.
    pub cursor: Option<String>,
    /// Most results on the page; null leaves it to the server.
    pub limit: Option<u32>,
    /// Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
    /// What to sort by. Null means `created_at`.
    pub sort_key: Option<ThreadSearchSortKey>,
    /// Only threads started by these. Null or empty means `cli` and `vscode`.
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
}

/// Result of `thread/search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResponse {
    /// The threads found.
    pub data: Vec<ThreadSearchResult>,
    /// Cursor for listing the other way from the page's first result; null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/items/read`, which fetches stored items of one turn by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsReadParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// The turn the items belong to.
    pub turn_id: TurnId,
    /// Ids of the items, 1 to 100 of them.
    pub item_ids: Vec<ItemId>,
}

/// Result of `thread/items/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsReadResponse {
    /// The items, in the order in which they are stored, not in that of the ids.
    pub data: Vec<ThreadItemEntry>,
}

/// One working directory or several, for `thread/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ThreadListCwdFilter {
    /// This directory.
    One(String),
    /// Any of these directories.
    Many(Vec<String>),
}

open_enum! {
    /// Which end of a list comes first.
    pub enum SortDirection {
        /// Oldest or lowest first.
        Asc = "asc",
        /// Newest or highest first.
        Desc = "desc",
    }
}

open_enum! {
    /// What `thread/list` sorts by.
    pub enum ThreadSortKey {
        /// When the thread was made.
        CreatedAt = "created_at",
        /// When it last changed.
        UpdatedAt = "updated_at",
        /// When a turn last started in it.
        RecencyAt = "recency_at",
        /// Its place in its section.
        SectionPosition = "section_position",
    }
}

/// Where a page of `thread/items/list` begins.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ThreadItemsListCursor {
    /// A cursor from an earlier answer, from `thread/resume` or from `thread/revert`.
    Cursor(String),
    /// An item the client knows. Needs `turnId`; later pages go on with the cursor in the answer.
    Anchor(ThreadItemsListAnchor),
}

impl<'de> Deserialize<'de> for ThreadItemsListCursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or(deserializer)? {
            TextOr::Text(cursor) => Self::Cursor(cursor),
            TextOr::Other(anchor) => Self::Anchor(anchor),
        })
    }
}

/// One item of a list, with its turn and times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemEntry {
    /// The turn the item belongs to.
    pub turn_id: TurnId,
    /// The item.
    pub item: ThreadItem,
    /// When it was completed, in milliseconds since the epoch; null when not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null when not recorded.
    pub started_at_ms: Option<i64>,
}

/// A named group into which a client sorts threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSection {
    /// Id of the section; a new name does not change it.
    pub id: String,
    /// Name shown to the user.
    pub name: String,
    /// How clients show it; null when nothing was chosen.
    pub appearance: Option<ThreadSectionAppearance>,
}

/// How clients show a section. The values are the clients' own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionAppearance {
    /// Its colour; null for none.
    pub color: Option<String>,
    /// Its icon; null for none.
    pub icon: Option<String>,
}

/// How far the user has read a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// Where unread content begins; null when all is read.
    pub first_unread: Option<ThreadUnreadPosition>,
    /// Changes with the state. A change that names an older one is refused.
    pub revision: String,
}

tagged! {
    /// Where unread content of a thread begins.
    pub enum ThreadUnreadPosition by "type" {
        /// At the very start, as when the user marked the thread unread.
        ThreadStart = "threadStart",
        /// At a turn that has ended and was not looked at.
        Turn(TurnThreadUnreadPosition) = "turn",
    }
}

/// Names the first unread turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnThreadUnreadPosition {
    /// Id of the turn.
    pub turn_id: TurnId,
}

open_enum! {
    /// What `thread/search` sorts by.
    pub enum ThreadSearchSortKey {
        /// When the thread was made.
        CreatedAt = "created_at",
        /// When it last changed.
        UpdatedAt = "updated_at",
        /// When a turn last started in it.
        RecencyAt = "recency_at",
    }
}

/// One thread found by `thread/search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResult {
    /// Text around the match.
    pub snippet: String,
    /// The thread, without turns.
    pub thread: Thread,
}

tagged! {
    /// A known place from which to list items.
    pub enum ThreadItemsListAnchor by "type" {
        /// Next to an item: after it with `asc`, before it with `desc`. The item itself is left out.
        Item(ItemThreadItemsListAnchor) = "item",
    }
}

/// Names the item to list from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemThreadItemsListAnchor {
    /// Id of the item; it must be in the turn given as `turnId`.
    pub item_id: ItemId,
}
