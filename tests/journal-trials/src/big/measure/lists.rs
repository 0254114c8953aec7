//! Lists of very many threads, and searches of every kind that could be slow.

use std::time::Instant;

use anyhow::{Result, ensure};
use raddle_core::ports::{ListOrder, ListQuery, Pages};
use raddle_store::LocalJournal;

use super::super::generate::FOLDER_EVERY;
use super::{PAGE, PAGE_MS_MAX, ms};
use crate::verdict::{Limit, VerdictRow};

const SEARCH_MS_MAX: f64 = 100.0;

/// A search, and how many threads it must find.
struct SearchCase {
    what: &'static str,
    text: &'static str,
    query: ListQuery,
    expected: u64,
}

pub(super) async fn all(store: &LocalJournal, threads: u64) -> Result<Vec<VerdictRow>> {
    let query = ListQuery {
        limit: PAGE,
        ..ListQuery::default()
    };
    let start = Instant::now();
    let page = store.list(query.clone()).await?;
    let elapsed_ms = ms(start);
    ensure!(page.entries.len() == PAGE, "the list is short");
    let limit = Limit::AtMost(PAGE_MS_MAX);
    let mut rows = vec![VerdictRow::new(
        "the first page of the list",
        elapsed_ms,
        "ms",
        limit,
    )];
    for case in searches(threads, &query) {
        rows.extend(case.run(store).await?);
    }
    for (what, title) in [
        ("letters of ASCII", "number-0-of-many"),
        ("other letters", "Größe"),
    ] {
        rows.extend(list_by_title(store, &query, what, title).await?);
    }
    Ok(rows)
}

/// Pages through a list by a title that none of its newest threads has, until a thread is found or
/// the list ends.
async fn list_by_title(
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
        let start = Instant::now();
        let page = store.list(query.clone()).await?;
        slowest = slowest.max(ms(start));
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
    let case = |what, text, query: &ListQuery, expected| SearchCase {
        what,
        text,
        query: query.clone(),
        expected,
    };
    vec![
        case("a word of one thread", "number-77-of-many", query, 1),
        case("a word of every thread", "of-many", query, page),
        case(
            "four pages of it",
            "of-many",
            query,
            (4 * page).min(threads),
        ),
        case(
            "the largest page of it",
            "of-many",
            &largest,
            threads.min(1000),
        ),
        case("a word of none", "nobody-ever-said-this", query, 0),
        case("a word of all old threads", "many olden", query, page),
        case("two words of many", "error warning", query, page),
        // Every trigram of these occurs in nearly every thread.
        case(
            "words that never follow one another",
            "the error warning",
            query,
            0,
        ),
        case(
            "many such words",
            "found the expected error warning in function",
            query,
            0,
        ),
        case(
            "a word of every thread, of one folder",
            "of-many",
            &folder("/rare"),
            threads.div_ceil(FOLDER_EVERY).min(page),
        ),
        case(
            "a word of every thread, of no folder",
            "of-many",
            &folder("/none"),
            0,
        ),
        case("a word of every thread, archived", "of-many", &archived, 0),
    ]
}

impl SearchCase {
    /// Reads pages until the expected number is found, or the list ends.
    async fn run(mut self, store: &LocalJournal) -> Result<Vec<VerdictRow>> {
        let (mut count, mut pages, mut slowest) = (0, 0, 0.0_f64);
        loop {
            let start = Instant::now();
            let page = store
                .search(self.text.to_owned(), self.query.clone())
                .await?;
            slowest = slowest.max(ms(start));
            pages += 1;
            count += page.entries.len() as u64;
            self.query.cursor = page.next;
            let remaining = self.expected.saturating_sub(count);
            if self.query.cursor.is_none() || (remaining == 0 && self.expected > 0) {
                break;
            }
            // A page that ended early is completed by the next.
            if remaining > 0 {
                let remaining = usize::try_from(remaining)?;
                self.query.limit = self.query.limit.min(remaining);
            }
        }
        let what = self.what;
        ensure!(count == self.expected, "{what}: {count} were found");
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
