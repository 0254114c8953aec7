//! `fuzzyFileSearch/sessionStop`: end a search session. An unknown session counts as ended.

use std::sync::Arc;

use raddle_protocol::FuzzyFileSearchSessionStopResponse;
use raddle_protocol::methods::FuzzyFileSearchSessionStop;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<FuzzyFileSearchSessionStop>) {
    call.session.searches.stop(&call.params.session_id);
    call.reply.ok(&FuzzyFileSearchSessionStopResponse {});
}
