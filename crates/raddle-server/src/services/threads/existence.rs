//! The check that a thread which a request names exists, and its settings.

use raddle_core::{Settings, ThreadId};

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

/// Returns the settings of a thread's turns, without rights that the user granted. Opens no thread.
pub(crate) async fn settings_of(
    state: &ServerState,
    id: Option<ThreadId>,
) -> Result<Option<Settings>, WireError> {
    let Some(id) = id else {
        return Ok(None);
    };
    let peek = state.threads.peek(id).await;
    let peek = peek.map_err(|error| refused(id, error))?;
    Ok(Some(peek.thread.effective_settings()))
}
