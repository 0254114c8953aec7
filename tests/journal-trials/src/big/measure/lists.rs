//! Lists of very many threads, and searches of every kind that could be slow.

use std::time::Instant;

use anyhow::{Result, ensure};
use raddle_core::ports::{ListOrder, ListQuery, Pages};
use raddle_store::LocalJournal;

use super::super::generate::FOLDER_EVERY;
use super::{PAGE, PAGE_MS_MAX, ms};
use crate::verdict::{Limit, VerdictRow};

const SEARCH_MS_MAX: f64 = 100.0;

/// A search, and how many threads it must find in the end.
struct SearchCase {
    what: &'static str,
    text: &'static str,
    query: ListQuery,
    found: u64,
}

pub(super) async fn all(store: &LocalJournal, threads: u64) -> Result<Vec<VerdictRow>> {
    let query = ListQuery {
        limit: PAGE,
        ..ListQuery::default()
    };
    let begun = Instant::now();
    let page = store.list(query.clone()).await?;
    let took = ms(begun);
    ensure!(page.entries.len() == PAGE, "the list is short");
    let limit = Limit::AtMost(PAGE_MS_MAX);
    let mut rows = vec![VerdictRow::new(
        "the first page of the list",
        took,
        "ms",
        limit,
    )];
    for sought in searches(threads, &query) {
        rows.extend(sought.look(store).await?);
    }
    for (what, title) in [
        ("letters of ASCII", "number-0-of-many"),
        ("other letters", "Größe"),
    ] {
        rows.extend(titled(store, &query, what, title).await?);
    }
    Ok(rows)
}

/// Turns the pages of a list by a title that none of its newest threads has, until one is found or all were
/// looked at.
async fn titled(
    store: &LocalJournal,
    query: &ListQuery,
    what: &str,
    title: &str,
) -> Result<Vec<VerdictRow>> {
    let mut query = ListQuery {
        title: Some(title.to_owned()),
        order: ListOrder::Created,
        ..query.clone()
    };
    let (mut pages, mut slowest) = (0, 0.0_f64);
    loop {
        let begun = Instant::now();
        let page = store.list(query.clone()).await?;
        slowest = slowest.max(ms(begun));
        pages += 1;
        query.cursor = page.next;
        if query.cursor.is_none() || !page.entries.is_empty() {
            break;
        }
    }
    let limit = Limit::AtMost(SEARCH_MS_MAX);
    let what = format!("list by a title in {what}");
    let pages = VerdictRow::count(format!("{what}: pages"), pages);
    Ok(vec![VerdictRow::new(what, slowest, "ms", limit), pages])
}

fn searches(threads: u64, query: &ListQuery) -> Vec<SearchCase> {
    let page = (PAGE as u64).min(threads);
    let folder = |cwd: &str| ListQuery {
        cwds: vec![cwd.to_owned()],
        ..query.clone()
    };
    let archived = ListQuery {
        archived: true,
        ..query.clone()
    };
    let largest = ListQuery {
        limit: 1000,
        ..query.clone()
    };
    let sought = |what, text, query: &ListQuery, found| SearchCase {
        what,
        text,
        query: query.clone(),
        found,
    };
    vec![
        sought("a word of one thread", "number-77-of-many", query, 1),
        sought("a word of every thread", "of-many", query, page),
        sought(
            "four pages of it",
            "of-many",
            query,
            (4 * page).min(threads),
        ),
        sought(
            "the largest page of it",
            "of-many",
            &largest,
            threads.min(1000),
        ),
        sought("a word of none", "nobody-ever-said-this", query, 0),
        sought("a word of all old threads", "many olden", query, page),
        sought("two words of many", "error warning", query, page),
        // Every three letters of these are in nearly every thread.
        sought(
            "words that never follow one another",
            "the error warning",
            query,
            0,
        ),
        sought(
            "many such words",
            "found the expected error warning in function",
            query,
            0,
        ),
        sought(
            "a word of every thread, of one folder",
            "of-many",
            &folder("/rare"),
            threads.div_ceil(FOLDER_EVERY).min(page),
        ),
        sought(
            "a word of every thread, of no folder",
            "of-many",
            &folder("/none"),
            0,
        ),
        sought("a word of every thread, archived", "of-many", &archived, 0),
    ]
}

impl SearchCase {
    /// Turns pages until as many are found as there are to find, or as were asked for.
    async fn look(mut self, store: &LocalJournal) -> Result<Vec<VerdictRow>> {
        let (mut found, mut pages, mut slowest) = (0, 0, 0.0_f64);
        loop {
            let begun = Instant::now();
            let page = store
                .search(self.text.to_owned(), self.query.clone())
                .await?;
            slowest = slowest.max(ms(begun));
            pages += 1;
            found += page.entries.len() as u64;
            self.query.cursor = page.next;
            let left = self.found.saturating_sub(found);
            if self.query.cursor.is_none() || (left == 0 && self.found > 0) {
                break;
            }
            // A page that ended early is filled by the next.
            if left > 0 {
                let left = usize::try_from(left)?;
                self.query.limit = self.query.limit.min(left);
            }
        }
        let what = self.what;
        ensure!(found == self.found, "{what}: {found} were found");
        let limit = Limit::AtMost(SEARCH_MS_MAX);
        let mut rows = vec![VerdictRow::new(
            format!("search for {what}"),
            slowest,
            "ms",
            limit,
        )];
        if pages > 1 {
            rows.push(VerdictRow::count(
                format!("search for {what}: pages"),
                pages,
            ));
        }
        Ok(rows)
    }
}
