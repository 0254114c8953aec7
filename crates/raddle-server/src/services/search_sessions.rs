//! File searches that follow the typing of a user, as one connection started them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire_error::{WireError, quoted};

/// Limit: search sessions of one connection; beyond it, the server rejects the request with -32600.
const SESSIONS_MAX: usize = 64;

/// Limit: the id of a search session; beyond it, the server rejects the request with -32600.
///
/// Every notification carries it.
const ID_BYTES_MAX: usize = 256;

/// The folders of each search session, by its id.
#[derive(Debug, Default)]
pub(crate) struct SearchSessions {
    roots: Mutex<HashMap<String, Vec<String>>>,
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
        sessions.insert(id, roots);
        Ok(())
    }

    /// Returns the folders of a session.
    pub(crate) fn roots(&self, id: &str) -> Result<Vec<String>, WireError> {
        let unknown = || {
            let what = format!("fuzzy file search session not found: {}", quoted(id));
            WireError::Refused(what.into())
        };
        self.lock().get(id).cloned().ok_or_else(unknown)
    }

    /// Ends a session. An unknown one counts as ended.
    pub(crate) fn stop(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
