//! File searches that follow the typing of a user, as one connection started them.
//!
//! A session has at most one task, which runs one search at a time, and at most one pending query:
//! a newer query replaces it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::searches::Search;
use crate::wire_error::{WireError, quoted};

/// Limit: search sessions of one connection, with ended ones whose search still waits for a disk;
/// beyond it, the server rejects the request with -32600.
const SESSIONS_MAX: usize = 64;

/// Limit: the id of a search session; beyond it, the server rejects the request with -32600.
///
/// Every notification carries it.
const ID_BYTES_MAX: usize = 256;

/// The search sessions by their ids.
#[derive(Debug, Default)]
pub(crate) struct SearchSessions {
    sessions: Mutex<HashMap<String, SearchSession>>,
}

#[derive(Debug, Default)]
struct SearchSession {
    /// Its folders; none once it has ended and only its task remains.
    roots: Option<Arc<[String]>>,
    /// The query that the task begins next.
    pending: Option<SessionQuery>,
    /// The search of the newest query.
    newest: Option<Arc<Search>>,
    has_task: bool,
}

/// A query of a session, with its search and the folders to search.
#[derive(Debug)]
pub(crate) struct SessionQuery {
    pub(crate) query: String,
    pub(crate) search: Arc<Search>,
    pub(crate) roots: Arc<[String]>,
}

impl SearchSession {
    fn cancel(&mut self) {
        self.pending = None;
        if let Some(search) = self.newest.take() {
            search.cancel();
        }
    }
}

impl SearchSessions {
    /// Starts a session. A session with the same id is replaced.
    pub(crate) fn start(&self, id: String, roots: Vec<String>) -> Result<(), WireError> {
        let refused = |what: String| Err(WireError::Refused(what.into()));
        if id.is_empty() {
            return refused("sessionId must not be empty".to_owned());
        }
        if id.len() > ID_BYTES_MAX {
            let bytes = id.len();
            return refused(format!(
                "sessionId has {bytes} bytes; it may have {ID_BYTES_MAX}"
            ));
        }
        let mut sessions = self.lock();
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&id) {
            return refused(format!(
                "a connection may have {SESSIONS_MAX} search sessions; end one with \
                 fuzzyFileSearch/sessionStop"
            ));
        }
        let session = sessions.entry(id).or_default();
        session.cancel();
        session.roots = Some(roots.into());
        Ok(())
    }

    /// Cancels the search of a session. None of its matches are published from here on.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), WireError> {
        match self.lock().get_mut(id).filter(|it| it.roots.is_some()) {
            Some(session) => {
                session.cancel();
                Ok(())
            }
            None => {
                let what = format!("fuzzy file search session not found: {}", quoted(id));
                Err(WireError::Refused(what.into()))
            }
        }
    }

    /// Stores the newest query of a session. Returns whether the session needs a task.
    pub(crate) fn set_query(&self, id: &str, query: String, search: Search) -> bool {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(id) else {
            return false;
        };
        let Some(roots) = session.roots.clone() else {
            return false;
        };
        session.cancel();
        let search = Arc::new(search);
        session.newest = Some(search.clone());
        session.pending = Some(SessionQuery {
            query,
            search,
            roots,
        });
        !std::mem::replace(&mut session.has_task, true)
    }

    /// Returns the next query for the task of a session. Without one, the task must end.
    pub(crate) fn next_query(&self, id: &str) -> Option<SessionQuery> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        let next = session.pending.take();
        if next.is_none() {
            session.has_task = false;
            if session.roots.is_none() {
                sessions.remove(id);
            }
        }
        next
    }

    /// Calls `send`, unless the search is cancelled. A newer query or the end of the session comes
    /// before or after the call, never during it.
    pub(crate) fn publish(&self, search: &Search, send: impl FnOnce()) {
        let _sessions = self.lock();
        if !search.is_cancelled() {
            send();
        }
    }

    /// Ends a session. An unknown one counts as ended.
    pub(crate) fn stop(&self, id: &str) {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(id) else {
            return;
        };
        session.cancel();
        session.roots = None;
        if !session.has_task {
            sessions.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SearchSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::searches::Searches;

    fn started() -> SearchSessions {
        let sessions = SearchSessions::default();
        let started = sessions.start("a".to_owned(), vec!["/".to_owned()]);
        started.expect("a session");
        sessions
    }

    fn set_query(sessions: &SearchSessions, query: &str) -> bool {
        let search = Searches::default().begin(None);
        sessions.set_query("a", query.to_owned(), search)
    }

    fn is_published(sessions: &SearchSessions, query: &SessionQuery) -> bool {
        let mut is_published = false;
        sessions.publish(&query.search, || is_published = true);
        is_published
    }

    #[test]
    fn a_session_has_one_task_and_one_pending_query() {
        let sessions = started();
        assert!(set_query(&sessions, "0"));
        let running = sessions.next_query("a").expect("a query");
        assert!(is_published(&sessions, &running));
        for number in 1..1000 {
            assert!(!set_query(&sessions, &number.to_string()));
        }
        assert!(!is_published(&sessions, &running));
        let newest = sessions.next_query("a").expect("a query");
        assert_eq!(newest.query, "999");
        assert!(Arc::ptr_eq(&running.roots, &newest.roots));
        assert!(is_published(&sessions, &newest));
        assert!(sessions.next_query("a").is_none());
        assert!(set_query(&sessions, "a task ended, so another begins"));
    }

    #[test]
    fn an_ended_session_publishes_nothing_and_counts_while_its_task_runs() {
        let sessions = started();
        assert!(set_query(&sessions, "0"));
        let running = sessions.next_query("a").expect("a query");
        sessions.stop("a");
        assert!(!is_published(&sessions, &running));
        assert!(sessions.cancel("a").is_err());
        assert!(!set_query(&sessions, "1"));
        for number in 1..SESSIONS_MAX {
            let started = sessions.start(number.to_string(), Vec::new());
            started.expect("a session");
        }
        assert!(sessions.start("b".to_owned(), Vec::new()).is_err());
        assert!(sessions.next_query("a").is_none());
        sessions.start("b".to_owned(), Vec::new()).expect("a place");
    }

    #[test]
    fn a_replaced_session_keeps_its_task() {
        let sessions = started();
        assert!(set_query(&sessions, "0"));
        let running = sessions.next_query("a").expect("a query");
        for _ in 0..1000 {
            sessions.stop("a");
            let started = sessions.start("a".to_owned(), vec!["/new".to_owned()]);
            started.expect("a session");
            assert!(!set_query(&sessions, "1"));
        }
        assert!(!is_published(&sessions, &running));
        let newest = sessions.next_query("a").expect("a query");
        assert_eq!(*newest.roots, ["/new".to_owned()]);
    }
}
