//! Cursors of lists that belong to a thread. Each names its thread, so that a cursor of another
//! thread is rejected.

use raddle_agent::AgentError;
use raddle_core::ThreadId;
use raddle_core::ports::ReadError;

/// The character between a position in a list and the thread.
const CURSOR_SEPARATOR: char = '@';

/// Returns the cursor for a position in a list of the thread.
pub(crate) fn cursor(id: ThreadId, position: &str) -> String {
    format!("{position}{CURSOR_SEPARATOR}{id}")
}

/// Returns the position that a cursor names, if it belongs to the thread.
pub(crate) fn position(id: ThreadId, cursor: &str) -> Result<String, AgentError> {
    let parts = cursor.split_once(CURSOR_SEPARATOR);
    let parts = parts.filter(|(_, thread)| *thread == id.to_string());
    let position = parts.map(|(text, _)| text.to_owned());
    position.ok_or(AgentError::Read(ReadError::BadCursor))
}
