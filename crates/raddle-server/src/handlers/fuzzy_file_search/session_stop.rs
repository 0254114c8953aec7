//! `fuzzyFileSearch/sessionStop`: end a search session. An unknown session counts as ended.

use std::sync::Arc;

use raddle_protocol::FuzzyFileSearchSessionStopResponse;
use raddle_protocol::methods::FuzzyFileSearchSessionStop;

use super::session_update::search_name;
use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<FuzzyFileSearchSessionStop>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    session.searches.stop(&params.session_id);
    // A newer search of the same name cancels the running one.
    drop(
        state
            .searches
            .begin(Some(search_name(&session, &params.session_id))),
    );
    reply.ok(&FuzzyFileSearchSessionStopResponse {});
}
