//! The end of a thread's history, for clients that read it backwards page by page.

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{PageCursor, PageQuery};
use raddle_core::{Seq, ThreadId};

use super::cursors::cursor;

/// Cursors of the newest turn and the newest item.
#[derive(Debug)]
pub(crate) struct EndCursors {
    pub(crate) turns: Option<String>,
    pub(crate) items: Option<String>,
}

/// Returns the end of a thread now, or its end once the records from `before` on are reverted.
pub(crate) async fn ends(
    threads: &Threads,
    id: ThreadId,
    before: Option<Seq>,
) -> Result<EndCursors, AgentError> {
    let cursor_at = |seq, included| PageCursor { seq, included }.to_string();
    let query = PageQuery {
        cursor: before.map(|seq| cursor_at(seq, false)),
        limit: 1,
        newest_first: true,
    };
    let turns = threads.turns(id, query.clone()).await?.entries;
    let items = threads.items(id, None, query).await?.entries;
    Ok(EndCursors {
        turns: turns
            .first()
            .map(|it| cursor(id, &cursor_at(it.from, true))),
        items: items.first().map(|it| cursor(id, &cursor_at(it.seq, true))),
    })
}
