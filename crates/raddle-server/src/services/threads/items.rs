//! Completed items as answers show them.

use std::collections::HashSet;
use std::io;

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{ItemEntry, PageQuery};
use raddle_core::{Item, ItemId, ThreadId, TurnId, item_view};
use raddle_protocol::{ThreadItem, ThreadItemEntry};

/// How many bytes of items one answer holds. A single item may have more.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 << 20;

/// How many items are looked at at a time.
const ITEMS: usize = 100;

/// Items of a page, as many as fit into an answer, and at least one.
pub(crate) async fn shown(
    threads: &Threads,
    thread: ThreadId,
    entries: &[ItemEntry],
) -> Vec<ThreadItemEntry> {
    let mut shown = Vec::new();
    let mut bytes = 0;
    for it in entries {
        let item = show(threads, thread, &it.item).await;
        bytes += weight(&item);
        if bytes > ITEMS_BYTES_MAX && !shown.is_empty() {
            break;
        }
        shown.push(ThreadItemEntry {
            turn_id: it.turn.clone(),
            item,
            completed_at_ms: it.item.completed_at.map(|at| at.0),
            started_at_ms: Some(it.item.started_at.0),
        });
    }
    shown
}

/// An item as the wire shows it, with its images.
pub(crate) async fn show(threads: &Threads, thread: ThreadId, item: &Item) -> ThreadItem {
    let mut item = item_view(item);
    threads.show(thread, &mut item).await;
    item
}

/// How many bytes an item has on the wire.
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
    // What cannot be written has no weight.
    let _ = serde_json::to_writer(&mut count, item);
    count.0
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
