//! `raddle thread list`.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use raddle_console::{Printer, one_line};
use raddle_core::ports::{ListQuery, Page, ReadError, Summary};
use raddle_store::{Archive, NodeError, NodeLock};
use serde_json::{Value, json};

use super::time::utc;
use super::{open, unreadable, usage};
use crate::cli::ThreadList;
use crate::log;

/// The maximum lengths of a folder and of a title.
const FOLDER_LETTERS_MAX: usize = 40;
const TITLE_LETTERS_MAX: usize = 60;

/// The minimum length of a search text.
const LETTERS_MIN: usize = 3;

/// How long a search waits for the full-text index, and the interval of the checks.
const LAG_MAX: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(folder: &Path, args: &ThreadList) -> Result<ExitCode> {
    let archive = open(folder)?;
    print(args, |query, search| {
        let page = match (&archive, search) {
            (None, _) => Ok(Page::empty()),
            (Some(archive), None) => archive.list(query),
            (Some(archive), Some(text)) => find(folder, archive, text, query),
        };
        page.map_err(|error| match error {
            ReadError::BadCursor => error.into(),
            error => unreadable(folder, error),
        })
    })
}

/// Prints a page of threads. The closure returns those of a query that contain a text.
pub(super) fn print(
    args: &ThreadList,
    page: impl FnOnce(&ListQuery, Option<&str>) -> Result<Page<Summary>>,
) -> Result<ExitCode> {
    let cwd = args.cwd.as_ref().map(|cwd| {
        let cwd = std::path::absolute(cwd).context("--cwd")?;
        Ok::<_, anyhow::Error>(cwd.to_string_lossy().into_owned())
    });
    let query = ListQuery {
        archived: args.archived,
        cwds: cwd.transpose()?.into_iter().collect(),
        cursor: args.cursor.clone(),
        limit: args.limit.into(),
        ..ListQuery::default()
    };
    let search = args.search.as_deref();
    if search.is_some_and(|text| text.chars().count() < LETTERS_MIN) {
        return Ok(usage("--search needs at least 3 letters"));
    }
    let page = match page(&query, search) {
        Err(error) if matches!(error.downcast_ref(), Some(ReadError::BadCursor)) => {
            return Ok(usage(
                "invalid --cursor: pass the cursor of the previous page, or leave it out",
            ));
        }
        page => page?,
    };
    let mut printer = Printer::new();
    if args.json {
        let data: Vec<Value> = page.entries.iter().map(of).collect();
        let page = json!({ "data": data, "nextCursor": page.next });
        printer.line(&page.to_string())?;
    } else {
        table(&mut printer, &page.entries)?;
    }
    printer.flush()?;
    if let Some(next) = page.next.filter(|_| !args.json) {
        log::print_line(&format!("there are more: --cursor {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a full page of threads that contain a text, if there are enough, once the index is up to
/// date.
fn find(
    folder: &Path,
    archive: &Archive,
    text: &str,
    query: &ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let missing = catch_up(folder, archive)?;
    if missing > 0 {
        log::print_line(&format!(
            "{missing} threads are not yet in the index of words, so not all may be found; a running server \
             brings it up to date"
        ));
    }
    search_all(query, |query| archive.search(text, query))
}

/// Returns a full page of a search, if there are enough threads. A long search returns them in parts.
pub(super) fn search_all<E>(
    query: &ListQuery,
    search: impl Fn(&ListQuery) -> Result<Page<Summary>, E>,
) -> Result<Page<Summary>, E> {
    let mut page = search(query)?;
    while page.entries.len() < query.limit
        && let Some(cursor) = page.next.take()
    {
        let rest = ListQuery {
            cursor: Some(cursor),
            limit: query.limit - page.entries.len(),
            ..query.clone()
        };
        let rest = search(&rest)?;
        page.entries.extend(rest.entries);
        page.next = rest.next;
    }
    Ok(page)
}

/// Waits until the full-text index has all stored records, if a running server maintains it.
/// Returns how many threads it still lacks.
fn catch_up(folder: &Path, archive: &Archive) -> Result<usize, ReadError> {
    let mut lag = archive.lag()?;
    let unavailable = |error: NodeError| ReadError::Unavailable(error.to_string());
    if lag.threads() > 0 && NodeLock::is_any_alive(folder).map_err(unavailable)? {
        let begun = Instant::now();
        while lag.threads() > 0 && begun.elapsed() < LAG_MAX {
            std::thread::sleep(POLL_INTERVAL);
            lag.refresh()?;
        }
    }
    Ok(lag.threads())
}

fn table(printer: &mut Printer, threads: &[Summary]) -> std::io::Result<()> {
    let folders: Vec<String> = threads.iter().map(|it| folder(&it.cwd)).collect();
    let widest = folders.iter().map(|it| it.chars().count()).max();
    let width = widest.unwrap_or(0);
    for (thread, folder) in threads.iter().zip(folders) {
        let title = thread.name.as_deref().unwrap_or(&thread.preview);
        let line = format!(
            "{}  {}  {:>5}  {folder:<width$}  {}",
            thread.thread,
            utc(thread.recency_at),
            thread.turns,
            one_line(title, TITLE_LETTERS_MAX)
        );
        printer.line(line.trim_end())?;
    }
    Ok(())
}

/// Truncates a folder at its start, because its end is more specific.
fn folder(cwd: &str) -> String {
    let cwd = one_line(cwd, usize::MAX);
    let letters = cwd.chars().count();
    if letters <= FOLDER_LETTERS_MAX {
        return cwd;
    }
    let end: String = cwd.chars().skip(letters + 1 - FOLDER_LETTERS_MAX).collect();
    format!("…{end}")
}

/// The JSON of a thread.
pub(super) fn of(thread: &Summary) -> Value {
    json!({
        "id": thread.thread,
        "name": thread.name,
        "preview": thread.preview,
        "cwd": thread.cwd,
        "archived": thread.archived,
        "turns": thread.turns,
        "createdAt": thread.created_at.seconds(),
        "recencyAt": thread.recency_at.seconds(),
        "head": thread.head,
    })
}
