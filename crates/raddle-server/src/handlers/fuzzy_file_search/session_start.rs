//! `fuzzyFileSearch/sessionStart`: start a search that follows the typing of a user.

use std::sync::Arc;

use raddle_protocol::FuzzyFileSearchSessionStartResponse;
use raddle_protocol::methods::FuzzyFileSearchSessionStart;

use super::check_roots;
use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<FuzzyFileSearchSessionStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let started = check_roots(&params.roots)
        .and_then(|()| session.searches.start(params.session_id, params.roots));
    reply.finish(started.map(|()| FuzzyFileSearchSessionStartResponse {}));
}
