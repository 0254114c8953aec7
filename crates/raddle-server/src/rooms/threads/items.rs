//! Completed items as answers show them.

use std::collections::HashSet;

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{ItemEntry, PageQuery};
use raddle_core::{ItemId, ThreadId, TurnId, item_view};
use raddle_protocol::ThreadItemEntry;

/// How many items are looked at at a time.
const ITEMS: usize = 100;

/// An item of a page.
pub(crate) fn entry(it: &ItemEntry) -> ThreadItemEntry {
    ThreadItemEntry {
        turn_id: it.turn.clone(),
        item: item_view(&it.item),
        completed_at_ms: it.item.completed_at.map(|at| at.0),
        started_at_ms: Some(it.item.started_at.0),
    }
}

/// Items of a turn by their ids, in the order in which they are stored. Those that are not there are
/// left out.
pub(crate) async fn find(
    threads: &Threads,
    thread: ThreadId,
    turn: &TurnId,
    ids: &[ItemId],
) -> Result<Vec<ItemEntry>, AgentError> {
    let mut wanted: HashSet<&ItemId> = ids.iter().collect();
    let mut found = Vec::new();
    let mut query = PageQuery {
        limit: ITEMS,
        ..PageQuery::default()
    };
    loop {
        let page = threads
            .items(thread, Some(turn.clone()), query.clone())
            .await?;
        let mut entries = page.entries;
        entries.retain(|it| wanted.remove(&it.item.id));
        found.append(&mut entries);
        query.cursor = page.next;
        if wanted.is_empty() || query.cursor.is_none() {
            return Ok(found);
        }
    }
}
