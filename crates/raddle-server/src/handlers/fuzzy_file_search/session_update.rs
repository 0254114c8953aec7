//! `fuzzyFileSearch/sessionUpdate`: change the query of a search session. The matches follow the
//! response as notifications, unless a newer query replaces this one.

use std::sync::Arc;

use raddle_protocol::methods::FuzzyFileSearchSessionUpdate;
use raddle_protocol::{
    FuzzyFileSearchSessionCompletedNotification, FuzzyFileSearchSessionUpdateParams,
    FuzzyFileSearchSessionUpdateResponse, FuzzyFileSearchSessionUpdatedNotification,
};

use super::{check_query, matches};
use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::PathAdmission;
use crate::services::searches::Search;
use crate::session::Session;
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<FuzzyFileSearchSessionUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let roots =
        check_query(&params.query).and_then(|()| session.searches.roots(&params.session_id));
    let roots = match roots {
        Ok(roots) => roots,
        Err(error) => return reply.error(error),
    };
    // Begins in the order of arrival: the newest search must be the one that remains.
    let name = search_name(&session, &params.session_id);
    let search = state.searches.begin(Some(name));
    reply.ok(&FuzzyFileSearchSessionUpdateResponse {});
    spans::spawn(run(state.clone(), session, search, params, roots));
}

/// Returns the name of a session's search. A client's session cancels no search of another client.
pub(super) fn search_name(session: &Session, id: &str) -> String {
    format!("{}/session/{id}", session.number)
}

/// Runs a search, and notifies the client of its matches.
async fn run(
    state: Arc<ServerState>,
    session: Arc<Session>,
    search: Search,
    params: FuzzyFileSearchSessionUpdateParams,
    mut roots: Vec<String>,
) {
    let admission = PathAdmission::of(&state, &session).await;
    drop(state);
    let FuzzyFileSearchSessionUpdateParams { session_id, query } = params;
    let reader = session.clone();
    let work = move || {
        let admission = admission.resolved();
        // A closed folder has no matches.
        roots.retain(|root| std::path::absolute(root).is_ok_and(|it| admission.check(&it).is_ok()));
        let files = matches(&search, &query, &roots, &admission, &reader);
        (!search.is_cancelled()).then_some((query, files))
    };
    let found = match session.disk.run(&session.outgoing, work).await {
        Ok(found) => found,
        Err(error) => return tracing::warn!(?error, "a search session got no matches"),
    };
    let Some((query, files)) = found else {
        return;
    };
    let updated = FuzzyFileSearchSessionUpdatedNotification {
        session_id: session_id.clone(),
        files,
        query,
    };
    session.notify(&updated.into());
    let completed = FuzzyFileSearchSessionCompletedNotification { session_id };
    session.notify(&completed.into());
}
