//! `thread/search`: the stored threads that contain a text.

use std::sync::Arc;

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{ListOrder, ListQuery};
use raddle_protocol::methods::ThreadSearch;
use raddle_protocol::{
    ThreadSearchParams, ThreadSearchResponse, ThreadSearchResult, ThreadSearchSortKey,
};

use crate::call::Request;
use crate::services::ServerState;
use crate::services::threads::{self, lists, snippets};
use crate::wire_error::WireError;

/// The shortest text to search for, in letters.
const LETTERS_MIN: usize = 3;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadSearch>,
) -> Result<ThreadSearchResponse, WireError> {
    let params = request.params;
    let text = params.search_term.clone();
    if text.chars().count() < LETTERS_MIN {
        let what = format!("searchTerm needs at least {LETTERS_MIN} letters");
        return Err(WireError::Refused(what.into()));
    }
    let response = search(&state.threads, text, query(params)?).await;
    response.map_err(threads::failed)
}

async fn search(
    threads: &Threads,
    text: String,
    query: ListQuery,
) -> Result<ThreadSearchResponse, AgentError> {
    let page = lists::page(threads, Some(&text), query).await?;
    let mut data = Vec::with_capacity(page.entries.len());
    for entry in &page.entries {
        data.push(ThreadSearchResult {
            snippet: snippets::snippet(threads, &entry.summary, &text).await?,
            thread: lists::listed(entry),
        });
    }
    Ok(ThreadSearchResponse {
        data,
        backwards_cursor: page.back,
        next_cursor: page.next,
    })
}

fn query(params: ThreadSearchParams) -> Result<ListQuery, WireError> {
    let order = match params.sort_key {
        None | Some(ThreadSearchSortKey::CreatedAt) => ListOrder::Created,
        Some(ThreadSearchSortKey::UpdatedAt) => ListOrder::Updated,
        Some(ThreadSearchSortKey::RecencyAt) => ListOrder::Recency,
        Some(ThreadSearchSortKey::Unrecognized(key)) => {
            return Err(lists::unknown("sortKey", &key, ThreadSearchSortKey::KNOWN));
        }
    };
    Ok(ListQuery {
        archived: params.archived.unwrap_or_default(),
        sources: Some(lists::sources(params.source_kinds)),
        order,
        oldest_first: !lists::newest_first(params.sort_direction.as_ref(), true)?,
        cursor: params.cursor,
        limit: lists::limit(params.limit),
        ..ListQuery::default()
    })
}
