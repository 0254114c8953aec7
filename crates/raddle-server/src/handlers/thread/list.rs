//! `thread/list`: the stored threads, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use raddle_agent::ListedThread;
use raddle_core::ports::{ListOrder, ListQuery, ListScope, Page};
use raddle_protocol::methods::ThreadList;
use raddle_protocol::{
    Maybe, Thread, ThreadId, ThreadListCwdFilter, ThreadListParams, ThreadListResponse,
    ThreadSortKey,
};
use serde_json::json;

use crate::call::Request;
use crate::relay;
use crate::services::ServerState;
use crate::services::threads::{self, lists};
use crate::wire_error::WireError;

/// Limit: folders that one `thread/list` names; beyond it, the server rejects the request with
/// -32600.
const FOLDERS_MAX: usize = 64;

/// The maximum number of threads that one request may exclude.
const EXCLUDED_MAX: usize = 100;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadList>,
) -> Result<ThreadListResponse, WireError> {
    let Request { params, session } = request;
    // Threads are in no section or project, and no thread has spawned another.
    let matches_none = matches!(params.section_id, Maybe::Value(_))
        || matches!(params.project_id, Maybe::Value(_))
        || params.parent_thread_id.is_some()
        || params.ancestor_thread_id.is_some()
        || params.attached_to_thread_id.is_some();
    let query = query(params)?;
    let page = match matches_none {
        true => Ok(Page::empty()),
        false => lists::page(&state.threads, None, query).await,
    };
    let page = page.map_err(threads::failed)?;
    let remote = relay::remote_threads(&state, &session).await;
    let entries = page.entries.iter();
    Ok(ThreadListResponse {
        data: entries.map(|it| listed_with_owner(it, &remote)).collect(),
        backwards_cursor: page.back,
        next_cursor: page.next,
        read_states: None,
    })
}

/// Returns a thread of the list, with its owner if another process has it.
fn listed_with_owner(it: &ListedThread, remote: &HashMap<ThreadId, String>) -> Thread {
    let mut thread = lists::listed(it);
    let node = remote.get(&it.summary.thread);
    thread.extra = node.map(|node| json!({ "owner": { "node": node } }));
    thread
}

/// Builds the query. The list always comes from the journal, so `useStateDbOnly` changes nothing.
fn query(params: ThreadListParams) -> Result<ListQuery, WireError> {
    let cwds = match params.cwd {
        None => Vec::new(),
        Some(ThreadListCwdFilter::One(cwd)) => vec![cwd],
        Some(ThreadListCwdFilter::Many(cwds)) => cwds,
    };
    if cwds.len() > FOLDERS_MAX {
        return Err(too_many("cwd", FOLDERS_MAX));
    }
    let except = params.excluded_thread_ids.unwrap_or_default();
    if except.len() > EXCLUDED_MAX {
        return Err(too_many("excludedThreadIds", EXCLUDED_MAX));
    }
    let order = match params.sort_key {
        // Without sections, no thread has a position in one.
        None | Some(ThreadSortKey::CreatedAt | ThreadSortKey::SectionPosition) => {
            ListOrder::Created
        }
        Some(ThreadSortKey::UpdatedAt) => ListOrder::Updated,
        Some(ThreadSortKey::RecencyAt) => ListOrder::Recency,
        Some(ThreadSortKey::Unrecognized(key)) => {
            return Err(lists::unknown("sortKey", &key, ThreadSortKey::KNOWN));
        }
    };
    let archived = params.archived.unwrap_or_default();
    Ok(ListQuery {
        scope: ListScope::default(),
        archived,
        // Clients start threads that they never use. As in the reference, only the list of archived
        // threads has those.
        used: !archived,
        cwds,
        providers: params.model_providers.unwrap_or_default(),
        sources: Some(lists::sources(params.source_kinds)),
        originators: params.originators.unwrap_or_default(),
        title: params.search_term,
        except,
        order,
        oldest_first: !lists::newest_first(params.sort_direction.as_ref(), true)?,
        cursor: params.cursor,
        limit: lists::limit(params.limit),
    })
}

fn too_many(member: &str, max: usize) -> WireError {
    WireError::Refused(format!("{member} names more than {max}; ask for fewer at a time").into())
}
