//! Conversion of list requests into queries of the journal.

use raddle_agent::{AgentError, ListedThread, Threads};
use raddle_core::ThreadSource;
use raddle_core::ports::{ListQuery, Page};
use raddle_protocol as wire;

use crate::wire_error::{WireError, quoted};

/// The default and the maximum number of entries of a page.
const LIMIT: u32 = 25;
const LIMIT_MAX: u32 = 100;

/// The maximum number of empty pages to skip.
const PAGES_MAX: usize = 20;

/// Returns a page of threads, filtered by a text if one is given. Skips empty pages: a client would
/// take one for the last.
pub(crate) async fn page(
    threads: &Threads,
    text: Option<&str>,
    mut query: ListQuery,
) -> Result<Page<ListedThread>, AgentError> {
    let mut pages = 1;
    loop {
        let mut page = match text {
            Some(text) => threads.search(text.to_owned(), query.clone()).await?,
            None => threads.list(query.clone()).await?,
        };
        if !page.entries.is_empty() || page.next.is_none() || pages == PAGES_MAX {
            return Ok(page);
        }
        query.cursor = page.next.take();
        pages += 1;
    }
}

/// Returns the number of entries of a page.
pub(crate) fn limit(requested: Option<u32>) -> usize {
    requested.unwrap_or(LIMIT).clamp(1, LIMIT_MAX) as usize
}

pub(crate) fn newest_first(
    requested: Option<&wire::SortDirection>,
    default: bool,
) -> Result<bool, WireError> {
    match requested {
        None => Ok(default),
        Some(wire::SortDirection::Desc) => Ok(true),
        Some(wire::SortDirection::Asc) => Ok(false),
        Some(wire::SortDirection::Unrecognized(it)) => {
            Err(unknown("sortDirection", it, wire::SortDirection::KNOWN))
        }
    }
}

/// Returns the error for an unknown value of a member that the server must act on.
pub(crate) fn unknown(member: &str, word: &str, known: &[&str]) -> WireError {
    let what = format!(
        "unknown {member}: {}; use {}",
        quoted(word),
        known.join(" or ")
    );
    WireError::Refused(what.into())
}

/// Returns the sources of threads to list: by default, those that people use. Agents start no
/// threads here, so their kinds match nothing.
pub(crate) fn sources(requested: Option<Vec<wire::ThreadSourceKind>>) -> Vec<ThreadSource> {
    use wire::ThreadSourceKind as Kind;
    let requested = requested.filter(|kinds| !kinds.is_empty());
    let kinds = requested.unwrap_or_else(|| vec![Kind::Cli, Kind::Vscode]);
    let sources = kinds.into_iter().filter_map(|kind| match kind {
        Kind::Cli => Some(ThreadSource::Cli),
        Kind::Vscode => Some(ThreadSource::Editor),
        Kind::Exec => Some(ThreadSource::Exec),
        Kind::AppServer => Some(ThreadSource::AppServer),
        Kind::Unrecognized(name) => Some(ThreadSource::Other(name.into())),
        Kind::SubAgent
        | Kind::SubAgentReview
        | Kind::SubAgentCompact
        | Kind::SubAgentThreadSpawn
        | Kind::SubAgentOther
        | Kind::Unknown => None,
    });
    sources.collect()
}

/// Converts a thread of a list. A thread that is not live here has the status `notLoaded`.
pub(crate) fn listed(it: &raddle_agent::ListedThread) -> wire::Thread {
    let mut thread = raddle_core::list_view(&it.summary);
    if let Some(status) = it.status {
        thread.status = raddle_core::status_view(status);
    }
    thread
}
