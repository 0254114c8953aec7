//! The check that a thread which a request names exists.

use raddle_core::ThreadId;

use super::refused;
use crate::services::ServerState;
use crate::wire_error::WireError;

/// Rejects a thread that does not exist. Opens no thread.
pub(crate) async fn check_exists(
    state: &ServerState,
    id: Option<ThreadId>,
) -> Result<(), WireError> {
    let Some(id) = id else {
        return Ok(());
    };
    let peek = state.threads.peek(id).await;
    peek.map(drop).map_err(|error| refused(id, error))
}
