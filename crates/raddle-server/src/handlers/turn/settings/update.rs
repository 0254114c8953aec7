//! `turn/settings/update`: change settings of the running turn. The server cannot: a turn keeps the
//! settings with which it started.

use std::sync::Arc;

use raddle_protocol::methods::TurnSettingsUpdate;
use raddle_protocol::{TurnSettingsUpdateResponse, TurnSettingsUpdateStatus};

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<TurnSettingsUpdate>,
) -> Result<TurnSettingsUpdateResponse, WireError> {
    let params = request.params;
    let id = params.thread_id;
    let peek = state.threads.peek(id).await;
    let peek = peek.map_err(|error| threads::refused(id, error))?;
    let running = peek.thread.turn().filter(|_| peek.is_owned());
    if running.is_some_and(|turn| turn.id == params.turn_id) {
        let what = "a running turn keeps its settings; change those of later turns with \
                    thread/settings/update, or interrupt the turn and start another";
        return Err(WireError::Refused(what.into()));
    }
    Ok(TurnSettingsUpdateResponse {
        status: TurnSettingsUpdateStatus::TargetUnavailable,
    })
}
