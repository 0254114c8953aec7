//! Completed items in responses.

use std::collections::HashSet;
use std::io;

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{ItemEntry, PageQuery};
use raddle_core::{Item, ItemId, ThreadId, TurnId, item_view};
use raddle_protocol::{ThreadItem, ThreadItemEntry};

/// Limit: items of the turns in one response (a single item may be larger); beyond it, the response
/// holds the newest; `thread/turns/list` and `thread/items/list` return the others.
///
/// A single item may be larger.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 << 20;

/// Page size when items are searched.
const ITEMS: usize = 100;

/// Returns items of a page, as many as fit into a response, and at least one.
pub(crate) async fn response_entries(
    threads: &Threads,
    thread: ThreadId,
    entries: &[ItemEntry],
) -> Vec<ThreadItemEntry> {
    let mut fitting = Vec::new();
    let mut bytes = 0;
    for it in entries {
        let item = show(threads, thread, &it.item).await;
        bytes += weight(&item);
        if bytes > ITEMS_BYTES_MAX && !fitting.is_empty() {
            break;
        }
        fitting.push(ThreadItemEntry {
            turn_id: it.turn.clone(),
            item,
            completed_at_ms: it.item.completed_at.map(|time| time.0),
            started_at_ms: Some(it.item.started_at.0),
        });
    }
    fitting
}

/// Returns an item for the wire, with its images.
pub(crate) async fn show(threads: &Threads, thread: ThreadId, item: &Item) -> ThreadItem {
    let mut item = item_view(item);
    threads.show(thread, &mut item).await;
    item
}

/// Returns the size of an item on the wire in bytes.
pub(crate) fn weight(item: &ThreadItem) -> usize {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    // An item that cannot be serialised counts as empty.
    let _ = serde_json::to_writer(&mut count, item);
    count.0
}

/// Returns items of a turn by their ids, in stored order. Leaves out ids that do not exist.
pub(crate) async fn find(
    threads: &Threads,
    thread: ThreadId,
    turn: &TurnId,
    ids: &[ItemId],
) -> Result<Vec<ItemEntry>, AgentError> {
    let mut missing: HashSet<&ItemId> = ids.iter().collect();
    let mut entries_found = Vec::new();
    let mut query = PageQuery {
        limit: ITEMS,
        ..PageQuery::default()
    };
    loop {
        let page = threads
            .items(thread, Some(turn.clone()), query.clone())
            .await?;
        let mut entries = page.entries;
        entries.retain(|it| missing.remove(&it.item.id));
        entries_found.append(&mut entries);
        query.cursor = page.next;
        if missing.is_empty() || query.cursor.is_none() {
            return Ok(entries_found);
        }
    }
}
