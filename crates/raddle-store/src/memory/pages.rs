//! Lists and pages of in-memory threads.

use std::future::ready;

use raddle_core::ports::{
    BoxFuture, ItemEntry, ListQuery, Page, PageCursor, PageQuery, Pages, ReadError, Summary,
    TurnEntry,
};
use raddle_core::{ThreadId, TurnId};

use super::log::{ThreadLog, weight};
use super::{MemoryJournal, MemoryState};
use crate::page::{self, HasSeq, ListCursor};

impl Pages for MemoryJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(ready(self.state().list(&query, |_| true)))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        let state = self.state();
        let page = state.log(thread).and_then(|log| {
            let turns = log
                .turns
                .iter()
                .filter(|(from, _)| !log.reverted.holds(**from));
            numbered(turns.map(|(_, it)| it.clone()).collect(), &query, |_| 0)
        });
        Box::pin(ready(page))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        let state = self.state();
        let log = state.log(thread);
        let page = log.and_then(|log| {
            let weigh = |it: &ItemEntry| log.records.get(&it.seq).map_or(0, weight);
            numbered(log.items(turn.as_ref()), &query, weigh)
        });
        Box::pin(ready(page))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        let needle = page::search_text(&text).map(|it| it.to_lowercase());
        let holds = |log: &ThreadLog| needle.as_ref().is_some_and(|it| log.holds(it));
        Box::pin(ready(self.state().list(&query, holds)))
    }
}

impl MemoryState {
    fn list(
        &self,
        query: &ListQuery,
        predicate: impl Fn(&ThreadLog) -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let cursor = ListCursor::parse(query)?;
        let leads_to = |it: &Summary| {
            let key = page::list_key(it, query.order);
            cursor.is_none_or(|cursor| cursor.leads_to(key, query.oldest_first))
        };
        let threads = self.threads.iter().filter(|(_, log)| predicate(log));
        let summaries = threads.filter_map(|(id, log)| {
            let summary = log.summary.as_ref()?;
            // Before its own first record, a fork's summary has the id of the other thread.
            (summary.thread == *id).then_some(summary)
        });
        let mut entries: Vec<Summary> = summaries
            .filter(|it| query.matches(it) && leads_to(it))
            .cloned()
            .collect();
        page::arrange(&mut entries, query);
        Ok(page::of_threads(entries, query))
    }
}

/// Returns a page of entries. It ends early if its entries weigh too much.
fn numbered<T: HasSeq>(
    mut all: Vec<T>,
    query: &PageQuery,
    weight: impl Fn(&T) -> usize,
) -> Result<Page<T>, ReadError> {
    let cursor = page::parse_cursor(query.cursor.as_deref())?;
    if query.newest_first {
        all.reverse();
    }
    all.retain(|it| match cursor {
        Some(PageCursor { seq, included }) if it.seq() == seq => included,
        Some(PageCursor { seq, .. }) => (it.seq() < seq) == query.newest_first,
        None => true,
    });
    let mut bytes = 0;
    let fits = all.iter().take(page::limit(query.limit)).take_while(|it| {
        let fits = bytes < page::ITEMS_BYTES_MAX;
        bytes += weight(it);
        fits
    });
    let fits = fits.count();
    let more = all.len() > fits;
    all.truncate(fits);
    Ok(page::of_numbered(all, more))
}
