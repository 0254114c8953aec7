//! Where a thread's history ends, for clients that read it page by page from there.

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{PageCursor, PageQuery};
use raddle_core::{Seq, ThreadId};

use super::cursors::cursor;

/// Cursors that name the newest of each.
#[derive(Debug)]
pub(crate) struct EndCursors {
    pub(crate) turns: Option<String>,
    pub(crate) items: Option<String>,
}

/// Where a thread ends now, or where it will when what comes from a record on is taken back.
pub(crate) async fn ends(
    threads: &Threads,
    id: ThreadId,
    before: Option<Seq>,
) -> Result<EndCursors, AgentError> {
    let at = |seq, included| PageCursor { seq, included }.to_string();
    let query = PageQuery {
        cursor: before.map(|seq| at(seq, false)),
        limit: 1,
        newest_first: true,
    };
    let turns = threads.turns(id, query.clone()).await?.entries;
    let items = threads.items(id, None, query).await?.entries;
    Ok(EndCursors {
        turns: turns.first().map(|it| cursor(id, &at(it.from, true))),
        items: items.first().map(|it| cursor(id, &at(it.seq, true))),
    })
}
