//! `fuzzyFileSearch/sessionUpdate`: change the query of a search session. The matches follow the
//! response as notifications, unless a newer query replaces this one.

use std::sync::{Arc, Weak};

use raddle_protocol::methods::FuzzyFileSearchSessionUpdate;
use raddle_protocol::{
    FuzzyFileSearchSessionCompletedNotification, FuzzyFileSearchSessionUpdateParams,
    FuzzyFileSearchSessionUpdateResponse, FuzzyFileSearchSessionUpdatedNotification,
};

use super::{check_query, matches};
use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::PathAdmission;
use crate::services::search_sessions::SessionQuery;
use crate::session::Session;
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<FuzzyFileSearchSessionUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let FuzzyFileSearchSessionUpdateParams { session_id, query } = params;
    // The older search is cancelled before the response, and the newer one begins after it.
    let cancelled = check_query(&query).and_then(|()| session.searches.cancel(&session_id));
    if let Err(error) = cancelled {
        return reply.error(error);
    }
    reply.ok(&FuzzyFileSearchSessionUpdateResponse {});
    let search = state.searches.begin(None);
    if session.searches.set_query(&session_id, query, search) {
        spans::spawn(run(Arc::downgrade(state), session, session_id));
    }
}

/// Runs the searches of a session until there is no newer query.
async fn run(state: Weak<ServerState>, session: Arc<Session>, session_id: String) {
    while let Some(query) = session.searches.next_query(&session_id) {
        let Some(state) = state.upgrade() else {
            return;
        };
        search(state, &session, &session_id, query).await;
    }
}

/// Runs one search, and notifies the client of its matches and of its end.
async fn search(
    state: Arc<ServerState>,
    session: &Arc<Session>,
    session_id: &str,
    session_query: SessionQuery,
) {
    let SessionQuery {
        query,
        search,
        roots,
    } = session_query;
    let admission = PathAdmission::of(&state, session).await;
    // A hanging disk does not keep the server from ending.
    drop(state);
    let (job, reader) = (search.clone(), session.clone());
    let work = move || {
        if job.is_cancelled() {
            return (query, Vec::new());
        }
        let admission = admission.resolved();
        // A closed folder has no matches.
        let is_open = |root: &&String| {
            !job.is_cancelled()
                && std::path::absolute(root).is_ok_and(|it| admission.check(&it).is_ok())
        };
        let roots: Vec<String> = roots.iter().filter(is_open).cloned().collect();
        let files = matches(&job, &query, &roots, &admission, &reader);
        (query, files)
    };
    let found = session.disk.run(&session.outgoing, work).await;
    session.searches.publish(&search, || {
        match found {
            Ok((query, files)) => {
                let updated = FuzzyFileSearchSessionUpdatedNotification {
                    session_id: session_id.to_owned(),
                    files,
                    query,
                };
                session.notify(&updated.into());
            }
            Err(error) => tracing::warn!(?error, "a search session got no matches"),
        }
        let completed = FuzzyFileSearchSessionCompletedNotification {
            session_id: session_id.to_owned(),
        };
        session.notify(&completed.into());
    });
}
