//! Listing and reading threads: lists, search, sections, and pages of turns and items. A cursor is
//! opaque and is valid only for the method and filters that returned it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::*;

/// Params of `thread/list`. A thread must match every filter; a null filter matches all threads
/// unless noted below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListParams {
    /// Only threads spawned below this one, at any depth. Cannot be combined with `parentThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub ancestor_thread_id: Option<ThreadId>,
    /// True lists only archived threads; false or null lists only the others.
    pub archived: Option<bool>,
    /// Only forks attached to this thread, which ordinary lists omit. Cannot be combined with
    /// `parentThreadId` and `ancestorThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub attached_to_thread_id: Option<ThreadId>,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Only threads with exactly this working directory, or one of these.
    pub cwd: Option<ThreadListCwdFilter>,
    /// Threads to omit from the list, at most 100. Repeat them for every page.
    pub excluded_thread_ids: Option<Vec<ThreadId>>,
    /// Maximum number of threads on the page. Null means 25; values outside 1 to 100 are clamped.
    pub limit: Option<u32>,
    /// Only threads of these providers. Null or empty means all.
    pub model_providers: Option<Vec<String>>,
    /// Only threads created by these client programs. Null or empty means all.
    pub originators: Option<Vec<String>>,
    /// Only direct children of this thread. Cannot be combined with `ancestorThreadId`.
    #[schemars(extend("x-experimental" = true))]
    pub parent_thread_id: Option<ThreadId>,
    /// Only threads of this project. On the wire, absence means all threads, and null means threads
    /// without a project.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub project_id: Maybe<String>,
    /// Only threads whose title contains this text.
    pub search_term: Option<String>,
    /// Only threads of this section. On the wire, absence means all threads, and null means threads
    /// without a section.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub section_id: Maybe<String>,
    /// Sort order. Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
    /// Sort key. Null means `created_at`.
    pub sort_key: Option<ThreadSortKey>,
    /// Only threads with these origins. Null or empty means `cli` and `vscode`.
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
    /// Answers from the index alone, without checking it against the histories. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub use_state_db_only: bool,
}

/// Result of `thread/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListResponse {
    /// One page of threads, without turns.
    pub data: Vec<Thread>,
    /// Cursor for listing in the opposite direction from the page's first thread; null on an empty
    /// page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Read states by thread id; threads without one are omitted. Null when the server stores none.
    #[schemars(extend("x-experimental" = true))]
    pub read_states: Option<BTreeMap<String, ThreadReadState>>,
}

/// Params of `thread/loaded/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLoadedListParams {
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of ids on the page; null means all.
    pub limit: Option<u32>,
}

/// Result of `thread/loaded/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLoadedListResponse {
    /// Ids of the threads in memory.
    pub data: Vec<ThreadId>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `thread/read`, which neither loads the thread nor subscribes to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// Includes all turns with their items. False by default; an error for ephemeral threads.
    #[serde(default, deserialize_with = "null_as_default")]
    pub include_turns: bool,
}

/// Result of `thread/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    /// The thread, with its turns only if `includeTurns` was set.
    pub thread: Thread,
    /// Read state of the thread. Null when the server stores none.
    #[schemars(extend("x-experimental" = true))]
    pub read_state: Option<ThreadReadState>,
}

/// Params of `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListParams {
    /// The thread to read.
    pub thread_id: ThreadId,
    /// Cursor from an earlier page; null starts at the end that `sortDirection` selects.
    pub cursor: Option<String>,
    /// How much of each turn's items to include. Null means `summary`.
    pub items_view: Option<TurnItemsView>,
    /// Maximum number of turns on the page. Null means 25; values outside 1 to 100 are clamped.
    pub limit: Option<u32>,
    /// Sort order. Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
}

/// Result of `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListResponse {
    /// One page of turns, in the requested order.
    pub data: Vec<Turn>,
    /// Cursor for reading in the opposite direction. The page's first turn is returned again, with
    /// its latest changes. Null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last page.
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
    /// Cursor from an earlier page; null starts at the end that `sortDirection` selects.
    pub cursor: Option<ThreadItemsListCursor>,
    /// Maximum number of items on the page. Null means 25; values outside 1 to 100 are clamped.
    pub limit: Option<u32>,
    /// Sort order. Null means `asc`, oldest first.
    pub sort_direction: Option<SortDirection>,
}

/// Result of `thread/items/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListResponse {
    /// One page of items, in the requested order.
    pub data: Vec<ThreadItemEntry>,
    /// Cursor for reading in the opposite direction from the page's first item; null on an empty
    /// page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `threadSection/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListParams {
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of sections on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `threadSection/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListResponse {
    /// One page of sections.
    pub data: Vec<ThreadSection>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `thread/search`, which searches for text inside threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchParams {
    /// The text to search for.
    pub search_term: String,
    /// True searches only archived threads; false or null searches only the others.
    pub archived: Option<bool>,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of results on the page; null leaves it to the server.
    pub limit: Option<u32>,
    /// Sort order. Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
    /// Sort key. Null means `created_at`.
    pub sort_key: Option<ThreadSearchSortKey>,
    /// Only threads with these origins. Null or empty means `cli` and `vscode`.
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
}

/// Result of `thread/search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResponse {
    /// One page of matching threads.
    pub data: Vec<ThreadSearchResult>,
    /// Cursor for listing in the opposite direction from the page's first result; null on an empty
    /// page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last page.
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
    /// The items in stored order, regardless of the order of the ids.
    pub data: Vec<ThreadItemEntry>,
}

/// Filter of `thread/list` by one or several working directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ThreadListCwdFilter {
    /// Threads with exactly this directory.
    One(String),
    /// Threads with any of these directories.
    Many(Vec<String>),
}

open_enum! {
    /// Sort order of a list.
    pub enum SortDirection {
        /// Oldest or lowest first.
        Asc = "asc",
        /// Newest or highest first.
        Desc = "desc",
    }
}

open_enum! {
    /// Sort key of `thread/list`.
    pub enum ThreadSortKey {
        /// Creation time of the thread.
        CreatedAt = "created_at",
        /// Time of the last change.
        UpdatedAt = "updated_at",
        /// Start time of the newest turn.
        RecencyAt = "recency_at",
        /// Position of the thread in its section.
        SectionPosition = "section_position",
    }
}

/// Start of a page of `thread/items/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ThreadItemsListCursor {
    /// A cursor from an earlier response, from `thread/resume` or from `thread/revert`.
    Cursor(String),
    /// An item known to the client. Requires `turnId`; later pages continue with the cursor of the
    /// response.
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
    /// The completed item.
    pub item: ThreadItem,
    /// Completion time, in milliseconds since the epoch; null when not recorded.
    pub completed_at_ms: Option<i64>,
    /// Start time, in milliseconds since the epoch; null when not recorded.
    pub started_at_ms: Option<i64>,
}

/// A named group into which a client sorts threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSection {
    /// Id of the section; renaming does not change it.
    pub id: String,
    /// Name shown to the user.
    pub name: String,
    /// Display style; null when none was chosen.
    pub appearance: Option<ThreadSectionAppearance>,
}

/// Display style of a section. The values are defined by clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionAppearance {
    /// Colour of the section; null if it has none.
    pub color: Option<String>,
    /// Icon of the section; null if it has none.
    pub icon: Option<String>,
}

/// Read state of a thread: how far the user has read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// Position of the first unread content; null when everything is read.
    pub first_unread: Option<ThreadUnreadPosition>,
    /// Revision of the read state. A change based on an older revision is rejected.
    pub revision: String,
}

tagged! {
    /// Position of the first unread content of a thread.
    pub enum ThreadUnreadPosition by "type" {
        /// The start of the thread, for example because the user marked it unread.
        ThreadStart = "threadStart",
        /// A completed turn that the user has not viewed.
        Turn(TurnThreadUnreadPosition) = "turn",
    }
}

/// The first unread turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnThreadUnreadPosition {
    /// Id of the unread turn.
    pub turn_id: TurnId,
}

open_enum! {
    /// Sort key of `thread/search`.
    pub enum ThreadSearchSortKey {
        /// Creation time of the thread.
        CreatedAt = "created_at",
        /// Time of the last change.
        UpdatedAt = "updated_at",
        /// Start time of the newest turn.
        RecencyAt = "recency_at",
    }
}

/// One match of `thread/search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResult {
    /// Text around the match.
    pub snippet: String,
    /// The matching thread, without turns.
    pub thread: Thread,
}

tagged! {
    /// A known position from which to list items.
    pub enum ThreadItemsListAnchor by "type" {
        /// Next to an item: after it with `asc`, before it with `desc`. The item itself is omitted.
        Item(ItemThreadItemsListAnchor) = "item",
    }
}

/// The item to list from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemThreadItemsListAnchor {
    /// Id of the item; it must be in the turn given as `turnId`.
    pub item_id: ItemId,
}
