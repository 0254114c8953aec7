//! Lists and pages of what is in memory.

use std::future::ready;

use raddle_core::ports::{
    ListQuery, Page, PageQuery, Pages, ReadError, Summary, TurnEntry, Waiting,
};
use raddle_core::{Item, Seq, ThreadId, TurnId};

use super::log::Log;
use super::{Kept, MemoryJournal};
use crate::page::{self, ListCursor};

impl Pages for MemoryJournal {
    fn list(&self, query: ListQuery) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(ready(self.kept().list(&query, |_| true)))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<TurnEntry>, ReadError>> {
        let kept = self.kept();
        let page = kept.log(thread).and_then(|log| {
            let turns = log.turns.iter().filter(|(from, _)| !log.cuts.holds(**from));
            numbered(
                turns.map(|(from, it)| (*from, it.clone())).collect(),
                &query,
            )
        });
        Box::pin(ready(page))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<Item>, ReadError>> {
        let kept = self.kept();
        let log = kept.log(thread);
        let page = log.and_then(|log| numbered(log.items(turn.as_ref()), &query));
        Box::pin(ready(page))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        let sought = page::sought(&text).map(|it| it.to_lowercase());
        let holds = |log: &Log| sought.as_ref().is_some_and(|it| log.holds(it));
        Box::pin(ready(self.kept().list(&query, holds)))
    }
}

impl Kept {
    fn list(
        &self,
        query: &ListQuery,
        wanted: impl Fn(&Log) -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let cursor = ListCursor::parse(query.cursor.as_deref())?;
        let threads = self.threads.iter().filter(|(_, log)| wanted(log));
        let summaries = threads.filter_map(|(id, log)| {
            let summary = log.summary.as_ref()?;
            // Before its own first record, a copy still has the other thread's name on it.
            (summary.thread == *id).then_some(summary)
        });
        let mut found: Vec<Summary> = summaries
            .filter(|it| it.archived == query.archived)
            .filter(|it| query.cwd.as_ref().is_none_or(|cwd| *cwd == it.cwd))
            .filter(|it| cursor.is_none_or(|cursor| ListCursor::of(it) < cursor))
            .cloned()
            .collect();
        found.sort_by_key(|it| std::cmp::Reverse(ListCursor::of(it)));
        let limit = page::limit(query.limit);
        found.truncate(limit + 1);
        Ok(page::of_threads(found, limit))
    }
}

fn numbered<T>(mut all: Vec<(Seq, T)>, query: &PageQuery) -> Result<Page<T>, ReadError> {
    let cursor = page::seq_cursor(query.cursor.as_deref())?;
    if query.newest_first {
        all.reverse();
    }
    all.retain(|(seq, _)| match cursor {
        Some(cursor) if query.newest_first => *seq < cursor,
        Some(cursor) => *seq > cursor,
        None => true,
    });
    let limit = page::limit(query.limit);
    all.truncate(limit + 1);
    Ok(page::of_numbered(all, limit))
}
