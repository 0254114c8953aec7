//! What clients ask of lists, in the words of the journal.

use raddle_agent::{AgentError, ListedThread, Threads};
use raddle_core::ThreadSource;
use raddle_core::ports::{ListQuery, Page};
use raddle_protocol as wire;

use crate::wire_error::{WireError, shown};

/// How many entries a page has if the client does not say, and at most.
const LIMIT: u32 = 25;
const LIMIT_MAX: u32 = 100;

/// How many pages are looked at for one that has something on it.
const PAGES_MAX: usize = 20;

/// A page of threads, of those that hold a text if one is given. A page may end early; one with nothing on
/// it would look like the last.
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

/// How many entries a page has.
pub(crate) fn limit(asked: Option<u32>) -> usize {
    asked.unwrap_or(LIMIT).clamp(1, LIMIT_MAX) as usize
}

/// Whether a list begins with the newest.
pub(crate) fn newest_first(
    asked: Option<&wire::SortDirection>,
    default: bool,
) -> Result<bool, WireError> {
    match asked {
        None => Ok(default),
        Some(wire::SortDirection::Desc) => Ok(true),
        Some(wire::SortDirection::Asc) => Ok(false),
        Some(wire::SortDirection::Unrecognized(it)) => {
            Err(unknown("sortDirection", it, wire::SortDirection::KNOWN))
        }
    }
}

/// A word that this version does not know, where it would have to act on it.
pub(crate) fn unknown(member: &str, word: &str, known: &[&str]) -> WireError {
    let what = format!(
        "unknown {member}: {}; use {}",
        shown(word),
        known.join(" or ")
    );
    WireError::Refused(what.into())
}

/// The kinds of client whose threads are listed: those of people, if nothing is said. Agents start no
/// threads here, so nothing is listed for them.
pub(crate) fn sources(asked: Option<Vec<wire::ThreadSourceKind>>) -> Vec<ThreadSource> {
    use wire::ThreadSourceKind as Kind;
    let asked = asked.filter(|kinds| !kinds.is_empty());
    let kinds = asked.unwrap_or_else(|| vec![Kind::Cli, Kind::Vscode]);
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

/// A thread of a list. One that is not live here is not loaded.
pub(crate) fn listed(it: &raddle_agent::ListedThread) -> wire::Thread {
    let mut thread = raddle_core::list_view(&it.summary);
    if let Some(status) = it.status {
        thread.status = raddle_core::status_view(status);
    }
    thread
}
